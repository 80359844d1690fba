// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"bytes"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/test/envtest"
	"github.com/wherry-dev/wherry/test/envtest/program"
)

// plainPod is a pod that asks for nothing.
func plainPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c:1"}}},
	}
}

// TestDefaults checks what a test may rely on without a word: a pod needs no
// service account, and RBAC decides.
func TestDefaults(t *testing.T) {
	env := &envtest.Environment{}
	c := clientset(t, start(t, env))
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod, err := c.CoreV1().Pods("fresh").Create(t.Context(), plainPod("p"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pod.Spec.Volumes) > 0 || pod.Spec.Containers[0].ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("the pod got %+v", pod.Spec)
	}
	nobody, err := env.AddUser(envtest.User{Name: "nobody"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientset(t, nobody.Config()).CoreV1().Pods("fresh").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights lists: %v", err)
	}
}

// TestFlagsReachTheServer sets, appends to and disables flags, and sees the
// server behave so.
func TestFlagsReachTheServer(t *testing.T) {
	env := &envtest.Environment{}
	env.ControlPlane.GetAPIServer().Configure().
		Append("enable-admission-plugins", "AlwaysPullImages").
		Append("disable-admission-plugins", "NamespaceLifecycle", "LimitRanger").
		Set("authorization-mode", "AlwaysAllow").
		Set("etcd-servers", "http://nowhere").
		Set("tls-cert-file", "/none")
	before := logged.len()
	c := clientset(t, start(t, env))
	pod, err := c.CoreV1().Pods("default").Create(t.Context(), plainPod("p"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pod.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("enable-admission-plugins did nothing: %s", pod.Spec.Containers[0].ImagePullPolicy)
	}
	if _, err := c.CoreV1().ConfigMaps("there-is-none").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("disable-admission-plugins did nothing: %v", err)
	}
	nobody, err := env.AddUser(envtest.User{Name: "nobody"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientset(t, nobody.Config()).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("authorization-mode did nothing: %v", err)
	}
	if got := logged.since(before, "passed over"); len(got) != 1 || !strings.Contains(got[0], "etcd-servers") || !strings.Contains(got[0], "tls-cert-file") {
		t.Errorf("logged %q, want one line with both flags that say nothing", got)
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	at := &url.URL{Scheme: "http", Host: "127.0.0.1:8080"}
	for _, c := range []struct {
		name string
		set  func(*envtest.APIServer)
		want []string
	}{
		{"a flag there is not", func(s *envtest.APIServer) { s.Configure().Set("warp", "9") }, []string{"no flag", "warp"}},
		{"a value that is none", func(s *envtest.APIServer) { s.Configure().Set("event-ttl", "soon") }, []string{"event-ttl", "soon"}},
		{"a flag by name alone that needs a value", func(s *envtest.APIServer) { s.Configure().Enable("event-ttl") }, []string{"event-ttl"}},
		{"a flag the embedded server keeps to itself", func(s *envtest.APIServer) { s.Configure().Set("anonymous-auth", "true") }, []string{"anonymous-auth", "always off"}},
		{"a file there is not", func(s *envtest.APIServer) { s.Configure().Set("client-ca-file", "/none/ca.crt") }, []string{"client-ca-file", "/none/ca.crt"}},
		{"an address elsewhere", func(s *envtest.APIServer) { s.SecureServing.Address = "0.0.0.0" }, []string{"0.0.0.0", "127.0.0.1 only"}},
		{"a port without encryption", func(s *envtest.APIServer) { s.URL = at }, []string{"APIServer.URL", "SecureServing"}},
		{"another", func(s *envtest.APIServer) { s.InsecureServing = &envtest.ListenAddr{} }, []string{"InsecureServing", "SecureServing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := &envtest.Environment{}
			c.set(env.ControlPlane.GetAPIServer())
			_, err := env.Start()
			says(t, err, c.want...)
			if err := env.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestControlPlaneAlone uses the control plane without an Environment, and its
// deprecated methods.
func TestControlPlaneAlone(t *testing.T) {
	plane := &envtest.ControlPlane{}
	if _, err := plane.AddUser(envtest.User{Name: "early"}, nil); err == nil || !strings.Contains(err.Error(), "Start") {
		t.Errorf("AddUser before Start: %v", err)
	}
	if err := plane.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
		if at := plane.APIURL(); at != nil {
			t.Errorf("APIURL after Stop: %v", at)
		}
	}()
	cfg, err := plane.RESTClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if at := plane.APIURL().String(); at+"/" != cfg.Host || plane.APIServer.HostPort() != plane.APIURL().Host {
		t.Errorf("APIURL is %s, the configuration's host %s, HostPort %s", at, cfg.Host, plane.APIServer.HostPort())
	}
	if _, err := clientset(t, cfg).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if err := plane.Start(); err == nil {
		t.Error("a second Start succeeded while the first server runs")
	}
}

// TestServerAlone starts an APIServer without a ControlPlane, and an Etcd, which
// does nothing.
func TestServerAlone(t *testing.T) {
	etcd := &envtest.Etcd{}
	before := logged.len()
	etcd.Configure().Set("quota-backend-bytes", "1")
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := logged.since(before, "etcd"); len(got) != 1 {
		t.Errorf("logged %q, want one line that etcd's flags say nothing", got)
	}
	if err := etcd.Stop(); err != nil {
		t.Fatal(err)
	}
	server := &envtest.APIServer{}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	cfg, err := server.AddUser(envtest.User{Name: "a", Groups: []string{"system:masters"}}, &rest.Config{QPS: 5, Burst: 5})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Host, cfg.CAData = server.SecureServing.URL("https", "").String(), server.CA
	if _, err := clientset(t, cfg).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil || cfg.QPS != 5 {
		t.Errorf("%v, QPS %v", err, cfg.QPS)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}

// TestAddressStays restarts a server with its data in a folder: clients made
// before can go on.
func TestAddressStays(t *testing.T) {
	env := &envtest.Environment{ControlPlane: envtest.ControlPlane{Etcd: &envtest.Etcd{DataDir: t.TempDir()}}}
	before := start(t, env)
	c := clientset(t, before)
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	after, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	if after.Host != before.Host {
		t.Errorf("first %s, then %s", before.Host, after.Host)
	}
	if _, err := c.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the client made before: %v", err)
	}
}

func TestPortAsAsked(t *testing.T) {
	free := &envtest.WebhookInstallOptions{} // it knows a free port
	if err := free.PrepWithoutInstalling(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = free.Cleanup() }() // a temporary folder
	env := &envtest.Environment{}
	env.ControlPlane.GetAPIServer().SecurePort = free.LocalServingPort
	start(t, env)
	if port := env.ControlPlane.APIURL().Port(); port != env.ControlPlane.APIServer.Port || env.ControlPlane.APIServer.SecurePort != free.LocalServingPort {
		t.Errorf("listens on %s, asked for %d", port, free.LocalServingPort)
	}
}

// safeBuffer may be written to by a process while it is read.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestOutput(t *testing.T) {
	for name, set := range map[string]func(t *testing.T, env *envtest.Environment){
		"by field": func(_ *testing.T, env *envtest.Environment) { env.AttachControlPlaneOutput = true },
		"by variable": func(t *testing.T, _ *envtest.Environment) {
			t.Setenv("KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT", "true")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mine safeBuffer
			env := &envtest.Environment{}
			set(t, env)
			env.ControlPlane.GetAPIServer().Err = &mine // not replaced
			start(t, env)
			eventually(t, "the server logs", func() error {
				if mine.String() == "" {
					return io.EOF
				}
				return nil
			})
			if env.ControlPlane.APIServer.Out != io.Writer(os.Stdout) {
				t.Errorf("Out is %v", env.ControlPlane.APIServer.Out)
			}
		})
	}
}

func TestTimeoutsByVariable(t *testing.T) {
	t.Setenv(program.Env, self(t))
	t.Setenv(pretend, "deaf")
	t.Setenv("KUBEBUILDER_CONTROLPLANE_START_TIMEOUT", "300ms")
	t.Setenv("KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT", "200ms")
	_, err := (&envtest.Environment{}).Start()
	says(t, err, "not ready within 300ms", "not stop within 200ms")
	_, err = (&envtest.Environment{ControlPlaneStartTimeout: 100 * time.Millisecond}).Start()
	says(t, err, "not ready within 100ms", "not stop within 200ms")
}

func TestVariablesThatMakeNoSense(t *testing.T) {
	for name, value := range map[string]string{
		"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT":  "soon",
		"KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT":   "-1s",
		"KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT": "maybe",
		"USE_EXISTING_CLUSTER":                    "perhaps",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			_, err := (&envtest.Environment{}).Start()
			says(t, err, name, value)
		})
	}
}

// TestReady measures how long a start takes, with room for a machine that does
// other things.
func TestReady(t *testing.T) {
	const wanted, room, tries = 1300 * time.Millisecond, 10, 4
	quickest := time.Hour
	for i := 0; i < tries && quickest > room*wanted; i++ {
		begin := time.Now()
		start(t, &envtest.Environment{})
		quickest = min(quickest, time.Since(begin))
		t.Logf("ready after %v", time.Since(begin))
	}
	if quickest > room*wanted {
		t.Errorf("ready after %v at best, wanted %v on a machine that does nothing else", quickest, wanted)
	}
}

func TestSetupEnvtestFolder(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "/home/me")
	t.Setenv("LocalAppData", "/home/me/local")
	got, err := envtest.SetupEnvtestDefaultBinaryAssetsDirectory()
	if err != nil || !strings.HasPrefix(got, filepath.FromSlash("/home/me")) || !strings.Contains(got, "envtest") {
		t.Errorf("%s, %v", got, err)
	}
	t.Setenv("HOME", "")
	t.Setenv("LocalAppData", "")
	_, err = envtest.SetupEnvtestDefaultBinaryAssetsDirectory()
	says(t, err, "not set")
}
