// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherry-dev/wherry/test/envtest"
)

// TestUserUnderItsOwnRole runs requests as a user with a role, as an operator's
// tests should.
func TestUserUnderItsOwnRole(t *testing.T) {
	env := &envtest.Environment{}
	admin := clientset(t, start(t, env))
	user, err := env.AddUser(envtest.User{Name: "system:serviceaccount:ops:operator", Groups: []string{"operators"}}, &rest.Config{QPS: 7, Burst: 7, UserAgent: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	if cfg := user.Config(); cfg.QPS != 7 || cfg.UserAgent != "mine" || cfg != user.Config() {
		t.Errorf("Config is %v", cfg)
	}
	c := clientset(t, user.Config())
	if _, err := c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:ops:operator") {
		t.Errorf("without a role: %v", err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "operator"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}}
	if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "operator"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "operators"}},
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the role allows", func() error {
		_, err := c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		return err
	})
	if _, err := c.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the role allows more than it says: %v", err)
	}
	content, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	again, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientset(t, again).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("by the kubeconfig: %v", err)
	}
}

// TestEnvironmentKubeConfig reaches the server by Environment.KubeConfig, also
// after a restart, when the first one is stale.
func TestEnvironmentKubeConfig(t *testing.T) {
	env := &envtest.Environment{}
	start(t, env)
	first := string(env.KubeConfig)
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	if string(env.KubeConfig) == first {
		t.Error("the kubeconfig is still that of the first server")
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(env.KubeConfig)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientset(t, cfg).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}

func TestUserErrors(t *testing.T) {
	env := &envtest.Environment{}
	_, err := env.AddUser(envtest.User{Name: "early"}, nil)
	says(t, err, "early", "Start")
	start(t, env)
	_, err = env.AddUser(envtest.User{}, nil)
	says(t, err, "name")
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	_, err = env.AddUser(envtest.User{Name: "late"}, nil)
	says(t, err, "late", "Start")
}

func TestConfigBeforeStart(t *testing.T) {
	plane := &envtest.ControlPlane{}
	plane.GetAPIServer().SecureServing.Authn = &tokens{}
	user, err := plane.AddUser(envtest.User{Name: "early"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "started") {
			t.Errorf("panic %q", said)
		}
	}()
	user.Config()
}

// tokens is an Authn of the caller's: users have tokens, which the server reads
// from a file.
type tokens struct {
	calls []string
	file  string
}

func (a *tokens) Configure(workDir string, args *envtest.Arguments) error {
	a.calls = append(a.calls, "Configure")
	a.file = filepath.Join(workDir, "tokens.csv")
	args.Set("token-auth-file", a.file)
	return nil
}

func (a *tokens) Start() error {
	a.calls = append(a.calls, "Start")
	return os.WriteFile(a.file, []byte("sesame,ali,1,\"system:masters\"\n"), 0o600)
}

func (a *tokens) AddUser(user envtest.User, base *rest.Config) (*rest.Config, error) {
	a.calls = append(a.calls, "AddUser "+user.Name)
	cfg := rest.CopyConfig(base)
	cfg.BearerToken = "sesame"
	return cfg, nil
}

func (a *tokens) Stop() error {
	a.calls = append(a.calls, "Stop")
	return nil
}

func TestAuthnOfTheCaller(t *testing.T) {
	authn := &tokens{}
	env := &envtest.Environment{}
	env.ControlPlane.GetAPIServer().SecureServing.Authn = authn
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientset(t, cfg).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil || cfg.BearerToken != "sesame" {
		t.Errorf("by its token: %v, %q", err, cfg.BearerToken)
	}
	dir := env.ControlPlane.APIServer.CertDir
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(authn.calls, ", "); got != "Configure, Start, AddUser admin, Stop" {
		t.Errorf("called: %s", got)
	}
	if _, err := os.Stat(dir); dir == "" || err == nil {
		t.Errorf("the working folder %q is still there", dir)
	}
}

// TestKubectl runs what stands for kubectl here, and looks for one in vain.
func TestKubectl(t *testing.T) {
	env := &envtest.Environment{}
	env.ControlPlane.KubectlPath = self(t)
	start(t, env)
	t.Setenv(pretend, "kubectl")
	user, err := env.AddUser(envtest.User{Name: "ann", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := user.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, err := kubectl.Run("get", "pods")
	if err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(stdout)
	file, arguments, _ := strings.Cut(strings.TrimPrefix(string(said), "--kubeconfig="), " ")
	if arguments != "get pods" {
		t.Errorf("kubectl was called with %q", said)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientset(t, cfg).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("by its kubeconfig: %v", err)
	}
	_, stderr, err := env.ControlPlane.KubeCtl().Run("fail")
	complaint, _ := io.ReadAll(stderr)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 7 || string(complaint) != "as told" {
		t.Errorf("a kubectl that fails: %v, %q", err, complaint)
	}

	t.Setenv("PATH", t.TempDir())
	_, _, err = (&envtest.KubeCtl{}).Run("version")
	says(t, err, "no kubectl", "PATH", "TEST_ASSET_KUBECTL")
	t.Setenv("TEST_ASSET_KUBECTL", self(t))
	stdout, _, err = (&envtest.KubeCtl{}).Run("version")
	if said, _ := io.ReadAll(stdout); err != nil || string(said) != "version" {
		t.Errorf("by TEST_ASSET_KUBECTL: %q, %v", said, err)
	}
	_, _, err = (&envtest.ControlPlane{}).KubeCtl().Run("version")
	says(t, err, "Start")
}
