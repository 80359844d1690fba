// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/webhook/admission"
)

// defaultWith is a function as a defaulter.
type defaultWith[T runtime.Object] func(context.Context, T) error

func (d defaultWith[T]) Default(ctx context.Context, obj T) error { return d(ctx, obj) }

func TestDefaulter(t *testing.T) {
	const as = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":`
	tests := map[string]struct {
		object  string
		change  func(*Widget)
		options []admission.DefaulterOption
		patch   string
	}{
		"unchanged":              {object: `{"colour":"red"}}`, change: func(*Widget) {}},
		"unchanged, all unknown": {object: `{"colour":"red","extra":{"n":1.0},"size":0,"ratio":1.50}}`, change: func(*Widget) {}},
		"changed": {
			object: `{"colour":"","extra":{"n":1.0},"size":0,"ratio":1.50,"big":9007199254740993}}`,
			change: func(w *Widget) { w.Spec.Colour = "red" },
			patch:  `[{"op":"replace","path":"/spec/colour","value":"red"}]`,
		},
		"large number": {
			object: `{"colour":"red"}}`,
			change: func(w *Widget) { w.Spec.Big = 9007199254740993 },
			patch:  `[{"op":"add","path":"/spec/big","value":9007199254740993}]`,
		},
		"label on none": {
			object: `{"colour":"red"}}`,
			change: func(w *Widget) { w.Labels = map[string]string{"a/b": "c"} },
			patch:  `[{"op":"add","path":"/metadata/labels","value":{"a/b":"c"}}]`,
		},
		"filled where the caller has nothing": {
			object: `{"colour":"red"}}`,
			change: func(w *Widget) { w.Spec.Limits.Max = 3 },
			patch:  `[{"op":"add","path":"/spec/limits","value":{"max":3}}]`,
		},
		"unknown fields of list items stay": {
			object: `{"colour":"red","limits":{},"parts":[{"name":"a","extra":1},{"name":"b","extra":2}]}}`,
			change: func(w *Widget) {
				w.Spec.Parts[1].Count = 2
				w.Spec.Parts = append([]WidgetPart{{Name: "new"}}, w.Spec.Parts...)
			},
			patch: `[{"op":"add","path":"/spec/parts/0","value":{"name":"new"}},{"op":"add","path":"/spec/parts/2/count","value":2}]`,
		},
		"unknown and empty go if asked": {
			object:  `{"colour":"red","limits":{"max":0},"extra":{"n":1.0},"size":0,"ratio":1.50}}`,
			change:  func(*Widget) {},
			options: []admission.DefaulterOption{admission.DefaulterRemoveUnknownOrOmitableFields},
			patch:   `[{"op":"remove","path":"/spec/limits/max"},{"op":"remove","path":"/spec/extra"},{"op":"remove","path":"/spec/size"}]`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hook := admission.WithDefaulter(widgets(), defaultWith[*Widget](func(ctx context.Context, w *Widget) error {
				if req, err := admission.RequestFromContext(ctx); err != nil || req.UID != "u" {
					t.Errorf("request in the context: %v %v", req, err)
				}
				test.change(w)
				return nil
			}), test.options...)
			answer := ask(t, hook, admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, Object: raw(as + test.object)})
			if !answer.Allowed || answer.Result.Code != 200 {
				t.Fatalf("got %+v", answer)
			}
			if string(answer.Patch) != test.patch {
				t.Errorf("\ngot  %s\nwant %s", answer.Patch, test.patch)
			}
			if (answer.PatchType != nil) != (test.patch != "") {
				t.Errorf("patch type %v", answer.PatchType)
			}
		})
	}
}

// A patch, applied by the API server's library, gives what the defaulter made, and nothing else has changed.
func TestDefaulterPatchApplied(t *testing.T) {
	object := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","creationTimestamp":null},"spec":{"containers":[{"name":"a","image":"i","newField":{"x":1},
		"resources":{"limits":{"cpu":"1000m"}},"ports":[{"containerPort":80}]}],"futureField":1e2},"status":{}}`
	hook := admission.WithDefaulter(nil, defaultWith[*corev1.Pod](func(_ context.Context, p *corev1.Pod) error {
		p.Spec.Containers[0].Ports[0].Protocol = corev1.ProtocolTCP
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "b"})
		p.Spec.ServiceAccountName = "sa"
		return nil
	}))
	answer := ask(t, hook, admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(object)})
	patch, err := jsonpatch.DecodePatch(answer.Patch)
	if err != nil {
		t.Fatal(err)
	}
	got, err := patch.Apply([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","creationTimestamp":null},"spec":{"containers":[{"name":"a","image":"i","newField":{"x":1},
		"resources":{"limits":{"cpu":"1000m"}},"ports":[{"containerPort":80,"protocol":"TCP"}]},{"name":"b","resources":{}}],"serviceAccountName":"sa","futureField":1e2},"status":{}}`
	if !jsonpatch.Equal(got, []byte(want)) {
		t.Errorf("got %s", got)
	}
}

func TestDefaulterOutcomes(t *testing.T) {
	object := raw(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"colour":"red"}}`)
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "widgets"}, "w", errors.New("c"))
	tests := map[string]struct {
		req     admissionv1.AdmissionRequest
		err     error
		allowed bool
		code    int32
	}{
		"fine":           {req: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: object}, allowed: true, code: 200},
		"error":          {req: admissionv1.AdmissionRequest{Operation: admissionv1.Update, Object: object}, err: errors.New("no"), code: 403},
		"status":         {req: admissionv1.AdmissionRequest{Operation: admissionv1.Update, Object: object}, err: conflict, code: 409},
		"delete":         {req: admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: object}, err: errors.New("not asked"), allowed: true, code: 200},
		"no object":      {req: admissionv1.AdmissionRequest{Operation: admissionv1.Create}, code: 400},
		"another kind":   {req: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(`{"apiVersion":"v1","kind":"Pod"}`)}, code: 400},
		"another shape":  {req: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(`{"spec":7}`)}, code: 400},
		"kind left open": {req: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(`{"spec":{}}`)}, allowed: true, code: 200},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for form, hook := range map[string]*admission.Webhook{
				"typed":  admission.WithDefaulter(widgets(), defaultWith[*Widget](func(context.Context, *Widget) error { return test.err })),
				"custom": admission.WithCustomDefaulter(widgets(), &Widget{}, defaultWith[runtime.Object](func(context.Context, runtime.Object) error { return test.err })),
			} {
				answer := ask(t, hook, test.req)
				if answer.Allowed != test.allowed || answer.Result.Code != test.code {
					t.Errorf("%s: got %v %+v", form, answer.Allowed, answer.Result)
				}
			}
		})
	}
}

func TestUnstructuredDefaulter(t *testing.T) {
	hook := admission.WithDefaulter(nil, defaultWith[*unstructured.Unstructured](func(_ context.Context, u *unstructured.Unstructured) error {
		return unstructured.SetNestedField(u.Object, int64(1<<60+1), "spec", "big")
	}))
	answer := ask(t, hook, admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(`{"apiVersion":"x/v1","kind":"Y","spec":{"n":1.0}}`)})
	if got, want := string(answer.Patch), `[{"op":"add","path":"/spec/big","value":1152921504606846977}]`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestWrongTypesPanic(t *testing.T) {
	for name, make := range map[string]func(){
		"nil defaulter": func() { admission.WithDefaulter[*Widget](widgets(), nil) },
		"nil validator": func() { admission.WithValidator[*Widget](widgets(), nil) },
		"interface": func() {
			admission.WithDefaulter(widgets(), defaultWith[runtime.Object](func(context.Context, runtime.Object) error { return nil }))
		},
		"nil object": func() {
			admission.WithCustomDefaulter(widgets(), nil, defaultWith[runtime.Object](func(context.Context, runtime.Object) error { return nil }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("want a panic")
				}
			}()
			make()
		})
	}
}

func TestDecoder(t *testing.T) {
	d := admission.NewDecoder(widgets())
	tests := map[string]struct {
		raw  string
		into runtime.Object
		ok   bool
	}{
		"typed":            {`{"apiVersion":"example.com/v1","kind":"Widget","spec":{"colour":"red"}}`, &Widget{}, true},
		"case matters":     {`{"spec":{"COLOUR":"red"}}`, &Widget{}, true},
		"nothing":          {``, &Widget{}, false},
		"other version":    {`{"apiVersion":"example.com/v2","kind":"Widget"}`, &Widget{}, false},
		"not registered":   {`{"apiVersion":"v1","kind":"Pod"}`, &corev1.Pod{}, false},
		"nil":              {`{}`, (*Widget)(nil), false},
		"unstructured":     {`{"apiVersion":"a/v9","kind":"Any"}`, &unstructured.Unstructured{}, true},
		"bad unstructured": {`[]`, &unstructured.Unstructured{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := d.DecodeRaw(raw(test.raw), test.into); (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	w := &Widget{}
	req := admission.Request{}
	req.Object = raw(`{"spec":{"COLOUR":"red","big":9007199254740993}}`)
	if err := d.Decode(req, w); err != nil || w.Spec.Colour != "" || w.Spec.Big != 9007199254740993 {
		t.Errorf("got %+v, %v", w.Spec, err)
	}
	if _, err := json.Marshal(w); err != nil {
		t.Error(err)
	}
}
