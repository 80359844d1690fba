// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client"
	hubs "github.com/wherry-dev/wherry/client/conversion"
	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/manager"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/test/envtest"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/admission"
)

// gadgetManifests are what controller-gen writes for a kind with two versions:
// every webhook calls a service that a test does not have.
var gadgetManifests = map[string]string{
	"crd.yaml": `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: system, name: webhook-service, path: /convert}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`,
	"webhooks.yaml": `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mutating}
webhooks:
- name: mgadget.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {caBundle: Cg==, service: {namespace: system, name: webhook-service, path: /mutate-example-com-v1-gadget}}
  rules:
  - {apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [gadgets]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validating}
webhooks:
- name: vgadget.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {namespace: system, name: webhook-service, path: /validate-example-com-v1-gadget}}
  rules:
  - {apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [gadgets]}
`,
}

// GadgetV1 is the hub.
type GadgetV1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Size              int `json:"size,omitempty"`
}

// GadgetV2 counts in thousandths.
type GadgetV2 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Millis            int `json:"millis,omitempty"`
}

func (g *GadgetV1) DeepCopyObject() runtime.Object {
	c := *g
	c.ObjectMeta = *g.ObjectMeta.DeepCopy()
	return &c
}

func (g *GadgetV2) DeepCopyObject() runtime.Object {
	c := *g
	c.ObjectMeta = *g.ObjectMeta.DeepCopy()
	return &c
}

func (*GadgetV1) Hub() {}

func (g *GadgetV2) ConvertTo(dst hubs.Hub) error {
	hub := dst.(*GadgetV1)
	hub.ObjectMeta, hub.Size = g.ObjectMeta, g.Millis/1000
	return nil
}

func (g *GadgetV2) ConvertFrom(src hubs.Hub) error {
	hub := src.(*GadgetV1)
	g.ObjectMeta, g.Millis = hub.ObjectMeta, hub.Size*1000
	return nil
}

func gadgets() *runtime.Scheme {
	s := runtime.NewScheme()
	for version, obj := range map[string]runtime.Object{"v1": &GadgetV1{}, "v2": &GadgetV2{}} {
		gv := schema.GroupVersion{Group: "example.com", Version: version}
		s.AddKnownTypeWithName(gv.WithKind("Gadget"), obj)
		metav1.AddToGroupVersion(s, gv)
	}
	return s
}

// inspector gives gadgets a size, and refuses big ones.
type inspector struct{}

func (inspector) Default(_ context.Context, g *GadgetV1) error {
	if g.Size == 0 {
		g.Size = 3
	}
	return nil
}

func (inspector) ValidateCreate(_ context.Context, g *GadgetV1) (admission.Warnings, error) {
	if g.Size > 100 {
		return nil, errors.New("too big")
	}
	return nil, nil
}

func (inspector) ValidateUpdate(context.Context, *GadgetV1, *GadgetV1) (admission.Warnings, error) {
	return nil, nil
}
func (inspector) ValidateDelete(context.Context, *GadgetV1) (admission.Warnings, error) {
	return nil, nil
}

// runManager runs a manager on an environment's address for webhooks until the
// test ends.
func runManager(t *testing.T, env *envtest.Environment, add func(manager.Manager) error) {
	t.Helper()
	o := env.WebhookInstallOptions
	m, err := manager.New(env.Config, manager.Options{
		Scheme:  env.Scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: o.LocalServingHost, Port: o.LocalServingPort, CertDir: o.LocalServingCertDir,
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := add(m); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestWebhooksAndConversion installs manifests as controller-gen writes them and
// runs a manager with their webhooks: twice, because a suite may restart its
// environment.
func TestWebhooksAndConversion(t *testing.T) {
	dir := folder(t, gadgetManifests)
	env := &envtest.Environment{
		Scheme:                gadgets(),
		CRDDirectoryPaths:     []string{dir},
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{dir}},
	}
	for _, round := range []string{"first", "again"} {
		t.Run(round, func(t *testing.T) {
			start(t, env)
			if n, m := len(env.WebhookInstallOptions.MutatingWebhooks), len(env.WebhookInstallOptions.ValidatingWebhooks); n != 1 || m != 1 {
				t.Errorf("%d mutating and %d validating configurations, want 1 and 1", n, m)
			}
			runManager(t, env, func(m manager.Manager) error {
				return builder.WebhookManagedBy(m, &GadgetV1{}).WithDefaulter(inspector{}).WithValidator(inspector{}).Complete()
			})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := env.WebhookInstallOptions.WaitUntilServed(ctx); err != nil {
				t.Fatal(err)
			}
			c, err := client.New(env.Config, client.Options{Scheme: env.Scheme})
			if err != nil {
				t.Fatal(err)
			}
			refused := func() error {
				g := &GadgetV1{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "big-"}, Size: 101}
				if err := c.Create(t.Context(), g); err == nil || !strings.Contains(err.Error(), "too big") {
					return fmt.Errorf("a gadget that is too big: %w", err)
				}
				return nil
			}
			eventually(t, "the validator is called", refused) // the API server has its own watch of configurations
			g := &GadgetV1{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g"}}
			if err := c.Create(t.Context(), g); err != nil || g.Size != 3 {
				t.Errorf("defaulted to %d, %v", g.Size, err)
			}
			var two GadgetV2
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(g), &two); err != nil || two.Millis != 3000 {
				t.Errorf("converted to %d, %v", two.Millis, err)
			}
			if err := env.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPathNobodyServes runs a manager without the webhook that is installed.
func TestPathNobodyServes(t *testing.T) {
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{folder(t, map[string]string{"crd.yaml": gadgetManifests["crd.yaml"]})},
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{folder(t, map[string]string{"w.yaml": gadgetManifests["webhooks.yaml"]})}},
	}
	start(t, env)
	wait := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		return env.WebhookInstallOptions.WaitUntilServed(ctx)
	}
	says(t, wait(), "mgadget.example.com", "no webhook server answers", "LocalServingPort")
	runManager(t, env, func(m manager.Manager) error {
		m.GetWebhookServer().Register("/other", &webhook.Admission{})
		return nil
	})
	eventually(t, "the server answers", func() error {
		if err := wait(); strings.Contains(err.Error(), "no webhook server") {
			return err
		}
		return nil
	})
	says(t, wait(), "mgadget.example.com", "/mutate-example-com-v1-gadget", "nobody serves", "register")
	c, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server says so too", func() error {
		g := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generateName": "g-", "namespace": "default"}}}
		g.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"})
		if err := c.Create(t.Context(), g); err == nil || !strings.Contains(err.Error(), "mgadget.example.com") {
			return fmt.Errorf("created, or: %w", err)
		}
		return nil
	})
}

// TestCertificateOfAnother serves webhooks with a certificate of its own.
func TestCertificateOfAnother(t *testing.T) {
	path := "/x"
	o := &envtest.WebhookInstallOptions{PollInterval: 10 * time.Millisecond, ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{
		{Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "x", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Path: &path}}}}},
	}}
	if err := o.PrepWithoutInstalling(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Cleanup() }() // a temporary folder
	other, err := webhook.NewSelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	server := webhook.NewServer(webhook.Options{Host: o.LocalServingHost, Port: o.LocalServingPort, TLSOpts: []func(*tls.Config){other.TLS}})
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "the server answers", func() error { return server.StartedChecker()(nil) })
	within, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	says(t, o.WaitUntilServed(within), "certificate", "LocalServingCertDir", "CertDir")
}

func TestPrepWithoutInstalling(t *testing.T) {
	var given admissionregistrationv1.ValidatingWebhookConfiguration
	given.Name = "given"
	path, deep, elsewhere := "check", "//a/b", "https://elsewhere.example.com/x"
	for _, c := range []admissionregistrationv1.WebhookClientConfig{
		{Service: &admissionregistrationv1.ServiceReference{Path: &path}},
		{Service: &admissionregistrationv1.ServiceReference{Path: &deep}, CABundle: []byte("old")},
		{Service: &admissionregistrationv1.ServiceReference{}},
		{URL: &elsewhere, CABundle: []byte("theirs")},
		{URL: &elsewhere},
	} {
		given.Webhooks = append(given.Webhooks, admissionregistrationv1.ValidatingWebhook{ClientConfig: c})
	}
	before := given.DeepCopy()
	o := &envtest.WebhookInstallOptions{
		ValidatingWebhooks:           []*admissionregistrationv1.ValidatingWebhookConfiguration{&given},
		Paths:                        []string{folder(t, gadgetManifests)},
		LocalServingHostExternalName: "host.example.com",
	}
	for range 2 { // the second time changes nothing
		if err := o.PrepWithoutInstalling(); err != nil {
			t.Fatal(err)
		}
	}
	if given.String() != before.String() {
		t.Error("the caller's object was changed")
	}
	base := fmt.Sprintf("https://host.example.com:%d", o.LocalServingPort)
	want := []struct{ url, ca string }{
		{base + "/check", string(o.LocalServingCAData)},
		{base + "/a/b", string(o.LocalServingCAData)},
		{base + "/", string(o.LocalServingCAData)},
		{elsewhere, "theirs"},
		{elsewhere, string(o.LocalServingCAData)},
	}
	for i, w := range o.ValidatingWebhooks[0].Webhooks {
		if c := w.ClientConfig; c.Service != nil || *c.URL != want[i].url || string(c.CABundle) != want[i].ca {
			t.Errorf("webhook %d calls %+v, want %v", i, c, want[i].url)
		}
	}
	if n, m := len(o.MutatingWebhooks), len(o.ValidatingWebhooks); n != 1 || m != 2 || o.LocalServingHost != "127.0.0.1" {
		t.Errorf("%d mutating and %d validating configurations, want 1 and 2; host %s", n, m, o.LocalServingHost)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(o.LocalServingCertDir, "tls.crt"), filepath.Join(o.LocalServingCertDir, "tls.key"))
	if err != nil || pair.Leaf.VerifyHostname("host.example.com") != nil || pair.Leaf.VerifyHostname("127.0.0.1") != nil {
		t.Errorf("the certificate: %v, for %v %v", err, pair.Leaf.DNSNames, pair.Leaf.IPAddresses)
	}
	dir := o.LocalServingCertDir
	if err := o.Cleanup(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil || o.LocalServingCertDir != "" || o.LocalServingCAData != nil {
		t.Errorf("after Cleanup: %s, %q", dir, o.LocalServingCertDir)
	}
}

// TestCertificateOfTheCaller keeps what the caller brought, and its folder.
func TestCertificateOfTheCaller(t *testing.T) {
	dir := t.TempDir()
	o := &envtest.WebhookInstallOptions{LocalServingCertDir: dir, LocalServingCAData: []byte("mine")}
	if err := errors.Join(o.PrepWithoutInstalling(), o.Cleanup()); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 || !bytes.Equal(o.LocalServingCAData, []byte("mine")) {
		t.Errorf("the folder holds %v", entries)
	}
	o = &envtest.WebhookInstallOptions{LocalServingCertDir: dir}
	if err := o.PrepWithoutInstalling(); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("the folder holds %v, want a certificate and its key", entries)
	}
	if err := o.Cleanup(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("Cleanup removed the caller's folder: %v", err)
	}
}

func TestWebhookPathErrors(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	for _, c := range []struct {
		name    string
		options envtest.WebhookInstallOptions
		want    []string // nil: no error
	}{
		{"missing", envtest.WebhookInstallOptions{Paths: []string{absent}}, []string{"webhook path", "absent"}},
		{"missing, allowed", envtest.WebhookInstallOptions{Paths: []string{absent}, IgnoreErrorIfPathMissing: true}, nil},
		{"not YAML", envtest.WebhookInstallOptions{Paths: []string{folder(t, map[string]string{"w.yaml": "a: [b"})}}, []string{"w.yaml"}},
		{"an old version", envtest.WebhookInstallOptions{Paths: []string{folder(t, map[string]string{"w.yaml": strings.ReplaceAll(gadgetManifests["webhooks.yaml"], "k8s.io/v1", "k8s.io/v1beta1")})}}, []string{"w.yaml", "v1beta1", "admissionregistration.k8s.io/v1"}},
		{"a field of another type", envtest.WebhookInstallOptions{Paths: []string{folder(t, map[string]string{"w.yaml": strings.ReplaceAll(gadgetManifests["webhooks.yaml"], "webhooks:\n- ", "webhooks:\n  ")})}}, []string{"w.yaml", "webhooks"}},
		{"a host there is not", envtest.WebhookInstallOptions{LocalServingHost: "no such host"}, []string{"webhooks", "no such host"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.options.PrepWithoutInstalling()
			defer func() { _ = c.options.Cleanup() }() // a temporary folder
			if c.want != nil {
				says(t, err, c.want...)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPortsDiffer prepares many environments of one process: none may be given
// another's port.
func TestPortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 100 {
		o := &envtest.WebhookInstallOptions{LocalServingCertDir: "unused", LocalServingCAData: []byte("unused")}
		if err := o.PrepWithoutInstalling(); err != nil {
			t.Fatal(err)
		}
		if seen[o.LocalServingPort] {
			t.Fatalf("port %d was given twice", o.LocalServingPort)
		}
		seen[o.LocalServingPort] = true
	}
}

// TestConversionBySchemeOnly installs CRDs whose kinds do not convert here.
func TestConversionBySchemeOnly(t *testing.T) {
	env := &envtest.Environment{}
	cfg := start(t, env)
	dir := folder(t, map[string]string{"crd.yaml": gadgetManifests["crd.yaml"]})
	prepared := env.WebhookInstallOptions
	url := "https://example.com/convert"
	byURL := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: prepared.LocalServingCAData},
	}}
	install := func(o envtest.CRDInstallOptions) *apiextensionsv1.CustomResourceDefinition {
		t.Helper()
		crds, err := envtest.InstallCRDs(cfg, o)
		if err != nil {
			t.Fatal(err)
		}
		return crds[0]
	}
	without := install(envtest.CRDInstallOptions{Paths: []string{dir}, WebhookOptions: prepared})
	if without.Spec.Conversion != nil {
		t.Errorf("a kind that does not convert here has %+v", without.Spec.Conversion)
	}
	kept := without.DeepCopy()
	kept.Spec.Conversion = byURL
	if got := install(envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{kept}, WebhookOptions: prepared}); *got.Spec.Conversion.Webhook.ClientConfig.URL != url {
		t.Errorf("a URL that the caller gave became %+v", got.Spec.Conversion)
	}
	prepared.IgnoreSchemeConvertible = true
	here := fmt.Sprintf("https://127.0.0.1:%d/convert", prepared.LocalServingPort)
	if got := install(envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{without}, WebhookOptions: prepared}); *got.Spec.Conversion.Webhook.ClientConfig.URL != here {
		t.Errorf("with IgnoreSchemeConvertible: %+v", got.Spec.Conversion)
	}
	if without.Spec.Conversion != nil {
		t.Error("the caller's CRD was changed")
	}
}
