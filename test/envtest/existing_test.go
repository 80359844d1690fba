// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"os"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherry-dev/wherry/test/envtest"
)

// TestExistingCluster uses a server that another environment started, by field
// and by variable, and leaves it as it was.
func TestExistingCluster(t *testing.T) {
	owner := &envtest.Environment{}
	cfg := start(t, owner)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, owner.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := folder(t, gadgetManifests)
	for name, set := range map[string]func(t *testing.T, env *envtest.Environment){
		"by field": func(_ *testing.T, env *envtest.Environment) { env.UseExistingCluster, env.Config = new(true), cfg },
		"by variable": func(t *testing.T, _ *envtest.Environment) {
			t.Setenv("USE_EXISTING_CLUSTER", "True")
			t.Setenv("KUBECONFIG", file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := &envtest.Environment{
				CRDInstallOptions:     envtest.CRDInstallOptions{Paths: []string{dir}, CleanUpAfterUse: true},
				WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{dir}},
			}
			set(t, env)
			got, err := env.Start()
			if err != nil {
				t.Fatal(err)
			}
			if got.Host != cfg.Host && got.Host+"/" != cfg.Host {
				t.Errorf("the cluster is %s, want %s", got.Host, cfg.Host)
			}
			if _, err := clientcmd.RESTConfigFromKubeConfig(env.KubeConfig); err != nil {
				t.Errorf("KubeConfig: %v", err)
			}
			_, err = env.Snapshot(t.Context())
			says(t, err, "embedded", "UseExistingCluster")
			_, err = env.AddUser(envtest.User{Name: "u"}, nil)
			says(t, err, "not started")
			c := clientset(t, cfg)
			if _, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "validating", metav1.GetOptions{}); err != nil {
				t.Errorf("webhooks were not installed: %v", err)
			}
			if err := env.Stop(); err != nil {
				t.Fatal(err)
			}
			if _, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "validating", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("webhooks are left: %v", err)
			}
			eventually(t, "the CRD goes", func() error {
				err := c.RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com").Do(t.Context()).Error()
				if apierrors.IsNotFound(err) {
					return nil
				}
				return os.ErrExist
			})
			if _, err := c.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				t.Errorf("the cluster after Stop: %v", err)
			}
		})
	}
}

func TestStaleKubeconfig(t *testing.T) {
	gone := &envtest.Environment{}
	start(t, gone)
	stale := gone.KubeConfig
	if err := gone.Stop(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, stale, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	_, err := (&envtest.Environment{UseExistingCluster: new(true)}).Start()
	says(t, err, gone.Config.Host, "stale", "UseExistingCluster", "USE_EXISTING_CLUSTER")

	t.Setenv("KUBECONFIG", file+".none")
	_, err = (&envtest.Environment{UseExistingCluster: new(true)}).Start()
	says(t, err, "kubeconfig.none", "no such file")

	other := &envtest.Environment{}
	cfg := start(t, other)
	cfg.CertData, cfg.KeyData = gone.Config.CertData, gone.Config.KeyData
	_, err = (&envtest.Environment{UseExistingCluster: new(true), Config: cfg}).Start()
	says(t, err, cfg.Host, "stale")
}
