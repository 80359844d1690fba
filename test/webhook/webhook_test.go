// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package webhook_test has webhooks called by the embedded API server.
package webhook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/metrics"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/test/envtest"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/admission"
)

// startLimit is how long a server may take to be ready: it shares the machine with whatever else is being built.
const startLimit = 2 * time.Minute

// patience is how long anything else may take that must happen.
const patience = time.Minute

var (
	config      *rest.Config // reaches the embedded server with every right
	port        int          // where the webhooks are
	certificate *webhook.SelfSigned
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if certificate, err = webhook.NewSelfSigned("127.0.0.1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if port, err = findPort(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	env := &envtest.Environment{ControlPlaneStartTimeout: startLimit}
	if config, err = env.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	// Not by the environment, which would have the kind converted at an address of its own.
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD(at("/convert"), certificate.CABundle)}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// findPort is a loopback port that is free, and stays so between two servers: it is none of those that systems hand out to
// connections by themselves.
func findPort() (int, error) {
	var err error
	for range 20 {
		port := 20000 + rand.IntN(10000)
		var free net.Listener
		if free, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, free.Close()
		}
	}
	return 0, err
}

func freePort(t *testing.T) int {
	t.Helper()
	p, err := findPort()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// requests counts what a webhook of this process was asked.
func requests(t *testing.T, path string) (sum float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "controller_runtime_webhook_requests_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "webhook" && l.GetValue() == path {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

func at(path string) string { return fmt.Sprintf("https://127.0.0.1:%d%s", port, path) }

// judge says of a widget what its name asks for (WH-2).
type judge struct{}

func (judge) Default(_ context.Context, w *WidgetV1) error {
	if w.Spec.Colour == "" {
		w.Spec.Colour = "grey"
	}
	return nil
}

func (judge) ValidateCreate(_ context.Context, w *WidgetV1) (admission.Warnings, error) {
	invalid := apierrors.NewInvalid(widgetKind, w.Name, field.ErrorList{
		field.Invalid(field.NewPath("spec", "size"), w.Spec.Size, "too small"),
		field.Required(field.NewPath("spec", "shape"), "say it"),
	})
	switch w.Name {
	case "invalid":
		return nil, invalid
	case "wrapped":
		return nil, fmt.Errorf("ctx: %w", invalid)
	case "conflict":
		return nil, errors.Join(errors.New("plain"), apierrors.NewConflict(schema.GroupResource{Group: widgetKind.Group, Resource: "widgets"}, w.Name, errors.New("c")))
	case "plain":
		return nil, errors.New("plain words")
	case "warned":
		return admission.Warnings{"one", "two"}, nil
	case "invalid-warned":
		return admission.Warnings{"three"}, invalid
	case "panic":
		panic("secret")
	}
	return nil, nil
}

func (j judge) ValidateUpdate(_ context.Context, _, w *WidgetV1) (admission.Warnings, error) {
	if w.Spec.Size < 0 {
		return nil, errors.New("negative")
	}
	return nil, nil
}

func (judge) ValidateDelete(_ context.Context, w *WidgetV1) (admission.Warnings, error) {
	if w.Labels["keep"] != "" {
		return nil, errors.New("to be kept")
	}
	return nil, nil
}

// serve runs a manager with the webhooks until the test ends.
func serve(t *testing.T) {
	t.Helper()
	m, err := manager.New(config, manager.Options{
		Scheme:        newScheme(),
		Metrics:       metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, TLSOpts: []func(*tls.Config){certificate.TLS}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := builder.WebhookManagedBy(m, &WidgetV1{}).WithDefaulter(judge{}).WithValidator(judge{}).WithConverter(widgetConverter()).Complete(); err != nil {
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
	eventually(t, "the webhook server has started", func() error { return m.GetWebhookServer().StartedChecker()(nil) })
}

// eventually waits until check passes.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not after %s: %s: %v", patience, what, err)
		}
	}
}

// configure tells the API server of the webhooks for widgets.
func configure(t *testing.T, c client.Client) {
	t.Helper()
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{widgetKind.Group}, APIVersions: []string{"v1"}, Resources: []string{"widgets"}},
	}}
	reach := func(path string) admissionregistrationv1.WebhookClientConfig {
		url := at(path)
		return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: certificate.CABundle}
	}
	none, fail := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Fail
	for _, obj := range []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "widgets"},
			Webhooks: []admissionregistrationv1.MutatingWebhook{{
				Name: "mutate.widgets.example.com", ClientConfig: reach("/mutate-example-com-v1-widget"), Rules: rules,
				SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
			}},
		},
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "widgets"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "validate.widgets.example.com", ClientConfig: reach("/validate-example-com-v1-widget"), Rules: rules,
				SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
			}},
		},
	} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // or the next test's widgets would wait for this one's webhooks
			if err := c.Delete(context.WithoutCancel(t.Context()), obj); err != nil {
				t.Error(err)
			}
		})
	}
}

// warnings collects what the API server warns of.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *warnings) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.all = nil }()
	return w.all
}

func widget(version, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(widgetKind.WithVersion(version))
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

func TestWebhooksOfTheServer(t *testing.T) {
	serve(t)
	heard := &warnings{}
	hears := rest.CopyConfig(config)
	hears.WarningHandler = heard
	c, err := client.New(hears, client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	builtin, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	configure(t, builtin)
	eventually(t, "the API server calls the webhooks", func() error {
		probe := widget("v1", "plain", nil)
		if err := c.Create(t.Context(), probe); err == nil {
			return errors.Join(errors.New("it was let through"), c.Delete(t.Context(), probe))
		}
		return nil
	})
	t.Cleanup(func() { // another run makes the same
		widgets := widget("v1", "", nil)
		if err := c.DeleteAllOf(context.WithoutCancel(t.Context()), widgets, client.InNamespace("default")); err != nil {
			t.Error(err)
		}
	})
	heard.taken()
	t.Run("WH-2", func(t *testing.T) { judged(t, c, heard) })
	t.Run("defaulting", func(t *testing.T) { defaulted(t, c) })
	t.Run("conversion", func(t *testing.T) { converted(t, c) })
}

// judged is WH-2: what a validator says reaches the caller through the API server.
func judged(t *testing.T, c client.Client, heard *warnings) {
	for _, test := range []struct {
		name     string
		code     int32
		causes   int
		warnings []string
		text     []string
	}{
		{"invalid", 422, 2, nil, []string{"too small"}},
		{"wrapped", 422, 2, nil, []string{"ctx: ", "too small"}},
		{"conflict", 409, 0, nil, []string{"plain"}},
		{"plain", 403, 0, nil, []string{"plain words"}},
		{"warned", 0, 0, []string{"one", "two"}, nil},
		{"invalid-warned", 422, 2, []string{"three"}, nil},
		{"panic", 500, 0, nil, []string{"its log tells why"}},
	} {
		before := requests(t, "/validate-example-com-v1-widget")
		err := c.Create(t.Context(), widget("v1", test.name, map[string]any{"size": int64(1)}))
		if got := requests(t, "/validate-example-com-v1-widget") - before; got != 1 {
			t.Errorf("%s: the webhook counted %v requests", test.name, got)
		}
		if got := heard.taken(); !slices.Equal(got, test.warnings) {
			t.Errorf("%s: warnings %q, want %q", test.name, got, test.warnings)
		}
		if test.code == 0 {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			t.Errorf("%s: got %v", test.name, err)
			continue
		}
		got := status.Status()
		if got.Code != test.code || apierrors.IsInvalid(err) != (test.code == 422) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %d %v", test.name, got.Code, err)
		}
		for _, want := range test.text {
			if !strings.Contains(got.Message, want) {
				t.Errorf("%s: no %q in %q", test.name, want, got.Message)
			}
		}
		if test.causes > 0 && (got.Details == nil || got.Details.Kind != "Widget" || len(got.Details.Causes) != test.causes || got.Details.Causes[0].Field != "spec.size") {
			t.Errorf("%s: details %+v", test.name, got.Details)
		}
	}
}

func defaulted(t *testing.T, c client.Client) {
	w := widget("v1", "defaulted", map[string]any{"size": int64(1), "unknown": map[string]any{"big": int64(9007199254740993)}})
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if colour, _, _ := unstructured.NestedString(w.Object, "spec", "colour"); colour != "grey" {
		t.Errorf("colour %q", colour)
	}
	if big, _, _ := unstructured.NestedInt64(w.Object, "spec", "unknown", "big"); big != 9007199254740993 {
		t.Errorf("a field that the Go type does not know has become %d", big)
	}
	if err := unstructured.SetNestedField(w.Object, int64(-1), "spec", "size"); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), w); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "negative") {
		t.Errorf("update: %v", err)
	}
	if err := c.Delete(t.Context(), w); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func converted(t *testing.T, c client.Client) {
	for i := range 3 {
		if err := c.Create(t.Context(), widget("v2", fmt.Sprint("c", i), map[string]any{"millis": int64(i * 1000)})); err != nil {
			t.Fatal(err)
		}
	}
	one := widget("v1", "c2", nil)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
		t.Fatal(err)
	}
	if size, _, _ := unstructured.NestedInt64(one.Object, "spec", "size"); size != 2 {
		t.Errorf("stored as %v", one.Object["spec"])
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(widgetKind.WithVersion("v2"))
	list.SetKind("WidgetList")
	if err := c.List(t.Context(), list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, item := range list.Items {
		var i int64
		if _, err := fmt.Sscanf(item.GetName(), "c%d", &i); err != nil {
			continue
		}
		found++
		if millis, _, _ := unstructured.NestedInt64(item.Object, "spec", "millis"); millis != i*1000 || item.GetAPIVersion() != "example.com/v2" {
			t.Errorf("%s is %v", item.GetName(), item.Object)
		}
	}
	if found != 3 {
		t.Errorf("found %d", found)
	}
}
