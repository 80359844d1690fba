// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/admission"
	"github.com/wherry-dev/wherry/webhook/conversion"
)

// webhookWorld is a world with a webhook server, of which only the mux is used.
type webhookWorld struct {
	*world
	server   webhook.Server
	asked    int // for the server
	registry conversion.Registry
}

func newWebhookWorld(t *testing.T) *webhookWorld {
	return &webhookWorld{world: newWorld(t), server: webhook.NewServer(webhook.Options{}), registry: conversion.NewRegistry()}
}

func (w *webhookWorld) GetWebhookServer() webhook.Server          { w.asked++; return w.server }
func (w *webhookWorld) GetConverterRegistry() conversion.Registry { return w.registry }

// ask posts a review of a new object to path; nil means that nothing is served there.
func (w *webhookWorld) ask(path, object string) *admissionv1.AdmissionResponse {
	w.t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
		UID: "u", Namespace: "ns", Name: "n", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(object)},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	rec := w.post(path, body)
	if rec.Code == http.StatusNotFound {
		return nil
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(rec.Body.Bytes(), &review); err != nil || review.Response == nil {
		w.t.Fatalf("%d %s: %v", rec.Code, rec.Body, err)
	}
	return review.Response
}

func (w *webhookWorld) post(path string, body []byte) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Test", "given")
	rec := httptest.NewRecorder()
	w.server.WebhookMux().ServeHTTP(rec, req)
	return rec
}

// hooks is defaulter and validator of any type.
type hooks[T runtime.Object] struct {
	err  error
	also func(context.Context)
}

func (h hooks[T]) Default(ctx context.Context, obj T) error {
	any(obj).(metav1.Object).SetLabels(map[string]string{"by": "hook"})
	if h.also != nil {
		h.also(ctx)
	}
	return nil
}

func (h hooks[T]) ValidateCreate(context.Context, T) (admission.Warnings, error) { return nil, h.err }
func (h hooks[T]) ValidateUpdate(context.Context, T, T) (admission.Warnings, error) {
	return nil, h.err
}
func (h hooks[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, h.err }

const replicaSet = `{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"n"}}`

func TestWebhooksOfAKind(t *testing.T) {
	no := errors.New("no")
	for form, complete := range map[string]func(*webhookWorld) error{
		"typed": func(w *webhookWorld) error {
			return WebhookManagedBy(w, &appsv1.ReplicaSet{}).WithDefaulter(hooks[*appsv1.ReplicaSet]{}).WithValidator(hooks[*appsv1.ReplicaSet]{err: no}).Complete()
		},
		"custom": func(w *webhookWorld) error {
			return WebhookManagedBy[runtime.Object](w, &appsv1.ReplicaSet{}).WithCustomDefaulter(hooks[runtime.Object]{}).WithCustomValidator(hooks[runtime.Object]{err: no}).Complete()
		},
	} {
		t.Run(form, func(t *testing.T) {
			w := newWebhookWorld(t)
			if err := complete(w); err != nil {
				t.Fatal(err)
			}
			if answer := w.ask("/mutate-apps-v1-replicaset", replicaSet); answer == nil || !answer.Allowed || !strings.Contains(string(answer.Patch), "hook") {
				t.Errorf("defaulter: %+v", answer)
			}
			if answer := w.ask("/validate-apps-v1-replicaset", replicaSet); answer == nil || answer.Allowed || answer.Result.Message != "no" {
				t.Errorf("validator: %+v", answer)
			}
			if rec := w.post("/convert", nil); rec.Code != http.StatusNotFound {
				t.Errorf("nothing can be converted, got %d", rec.Code)
			}
		})
	}
}

func TestWebhookPaths(t *testing.T) {
	w := newWebhookWorld(t)
	if err := WebhookManagedBy(w, &corev1.Pod{}).WithValidator(hooks[*corev1.Pod]{}).Complete(); err != nil {
		t.Fatal(err)
	}
	if w.ask("/validate--v1-pod", `{}`) == nil || w.ask("/mutate--v1-pod", `{}`) != nil {
		t.Error("want the validator of pods and no defaulter")
	}
	other := WebhookManagedBy(w, &corev1.Pod{}).WithDefaulter(hooks[*corev1.Pod]{}).WithDefaulterCustomPath("/my/own").
		WithValidator(hooks[*corev1.Pod]{err: errors.New("other")}).WithValidatorCustomPath("/checked")
	if err := other.Complete(); err != nil {
		t.Fatal(err)
	}
	if w.ask("/my/own", `{}`) == nil || w.ask("/checked", `{}`).Allowed {
		t.Error("want the webhooks at their own paths")
	}
	if err := WebhookManagedBy(w, &corev1.Pod{}).WithValidator(hooks[*corev1.Pod]{err: errors.New("late")}).Complete(); err != nil {
		t.Fatal(err)
	}
	if !w.ask("/validate--v1-pod", `{}`).Allowed {
		t.Error("the first webhook of a path stays")
	}
}

func TestNoWebhookNoServer(t *testing.T) {
	w := newWebhookWorld(t)
	if err := WebhookManagedBy(w, &corev1.Pod{}).Complete(); err != nil {
		t.Fatal(err)
	}
	if w.asked != 0 {
		t.Error("a server was asked for, so the manager would run one")
	}
}

func TestWebhookMistakes(t *testing.T) {
	tests := map[string]struct {
		complete func(*webhookWorld) error
		want     []string
	}{
		"nil manager": {func(*webhookWorld) error { return WebhookManagedBy(nil, &corev1.Pod{}).Complete() }, []string{"manager is nil"}},
		"nil object": {func(w *webhookWorld) error {
			return WebhookManagedBy[*corev1.Pod](w, nil).WithDefaulterCustomPath("bad path").WithValidatorCustomPath("/a//b").Complete()
		}, []string{"object given to WebhookManagedBy is nil", `"bad path"`, `"/a//b"`}},
		"two of each": {func(w *webhookWorld) error {
			return WebhookManagedBy(w, &corev1.Pod{}).WithDefaulter(hooks[*corev1.Pod]{}).WithCustomDefaulter(hooks[runtime.Object]{}).
				WithValidator(hooks[*corev1.Pod]{}).WithCustomValidator(hooks[runtime.Object]{}).Complete()
		}, []string{"WithCustomDefaulter", "WithCustomValidator"}},
		"no type": {func(w *webhookWorld) error {
			return WebhookManagedBy[runtime.Object](w, &corev1.Pod{}).WithDefaulter(hooks[runtime.Object]{}).Complete()
		}, []string{"name the type"}},
		"unknown kind": {func(w *webhookWorld) error {
			return WebhookManagedBy(w, &metav1.Status{}).Complete()
		}, []string{"Status"}},
		"converter fails": {func(w *webhookWorld) error {
			return WebhookManagedBy(w, &corev1.Pod{}).WithConverter(func(*runtime.Scheme) (conversion.Converter, error) {
				return nil, errors.New("cannot be made")
			}).Complete()
		}, []string{"cannot be made"}},
		"converter twice": {func(w *webhookWorld) error {
			make := func(*runtime.Scheme) (conversion.Converter, error) { return copies{}, nil }
			if err := WebhookManagedBy(w, &corev1.Pod{}).WithConverter(make).Complete(); err != nil {
				return err
			}
			return WebhookManagedBy(w, &corev1.Pod{}).WithConverter(make).Complete()
		}, []string{"one already"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := test.complete(newWebhookWorld(t))
			if err == nil {
				t.Fatal("want an error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in %v", want, err)
				}
			}
		})
	}
}

// copies converts nothing but the name.
type copies struct{}

func (copies) ConvertObject(_ context.Context, src, dst runtime.Object) error {
	dst.(metav1.Object).SetName(src.(metav1.Object).GetName())
	return nil
}

func TestConvertersShareOnePath(t *testing.T) {
	w := newWebhookWorld(t)
	v2 := schema.GroupVersion{Group: "", Version: "v2"}
	w.scheme.AddKnownTypeWithName(v2.WithKind("Pod"), &corev1.ConfigMap{})
	make := func(*runtime.Scheme) (conversion.Converter, error) { return copies{}, nil }
	if err := WebhookManagedBy(w, &corev1.Pod{}).WithConverter(make).Complete(); err != nil {
		t.Fatal(err)
	}
	if err := WebhookManagedBy(w, &corev1.Secret{}).WithConverter(make).Complete(); err != nil {
		t.Fatal(err)
	}
	rec := w.post("/convert", []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"v2","objects":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}]}}`))
	if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"apiVersion":"v2"`) || !strings.Contains(rec.Body.String(), `"name":"p"`) {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}

type testKey struct{}

func TestWebhookSettings(t *testing.T) {
	w := newWebhookWorld(t)
	var lines []string
	w.log = funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, funcr.Options{})
	seen := ""
	also := func(ctx context.Context) {
		seen, _ = ctx.Value(testKey{}).(string)
		log.FromContext(ctx).Info("in the hook")
	}
	withValue := func(ctx context.Context, r *http.Request) context.Context {
		return context.WithValue(ctx, testKey{}, r.Header.Get("X-Test"))
	}
	if err := WebhookManagedBy(w, &corev1.Pod{}).WithDefaulter(hooks[*corev1.Pod]{also: also}).WithContextFunc(withValue).Complete(); err != nil {
		t.Fatal(err)
	}
	w.ask("/mutate--v1-pod", `{}`)
	if seen != "given" {
		t.Errorf("the context has %q", seen)
	}
	line := lines[len(lines)-1]
	for _, want := range []string{"in the hook", "admission", `"webhookGroup"=""`, `"webhookKind"="Pod"`, `"Pod"=`, `"namespace"="ns"`, `"name"="n"`, `"resource"=`, `"user"=`, `"requestID"="u"`} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}

	panics := func(context.Context) { panic("p") }
	named := func(base logr.Logger, _ *admission.Request) logr.Logger { return base.WithValues("mine", "yes") }
	if err := WebhookManagedBy(w, &corev1.Secret{}).WithDefaulter(hooks[*corev1.Secret]{also: panics}).WithLogConstructor(named).Complete(); err != nil {
		t.Fatal(err)
	}
	if answer := w.ask("/mutate--v1-secret", `{}`); answer.Allowed || answer.Result.Code != 500 {
		t.Errorf("got %+v", answer)
	}
	if line := lines[len(lines)-1]; !strings.Contains(line, `"mine"="yes"`) || strings.Contains(line, "webhookKind") {
		t.Errorf("not the constructor's logger: %s", line)
	}
	if err := WebhookManagedBy(w, &corev1.Service{}).WithDefaulter(hooks[*corev1.Service]{also: panics}).RecoverPanic(false).Complete(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() != "p" {
			t.Error("want the panic to go on")
		}
	}()
	w.ask("/mutate--v1-service", `{}`)
}
