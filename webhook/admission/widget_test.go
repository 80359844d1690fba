// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// Widget is the kind of these tests.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec `json:"spec"`
}

// WidgetSpec has a field of each sort.
type WidgetSpec struct {
	Size    int               `json:"size,omitempty"`
	Big     int64             `json:"big,omitempty"`
	Ratio   float64           `json:"ratio,omitempty"`
	Colour  string            `json:"colour"`
	Parts   []WidgetPart      `json:"parts,omitempty"`
	Tags    []string          `json:"tags,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	Limits  WidgetLimits      `json:"limits"`
}

// WidgetPart is known by its name.
type WidgetPart struct {
	Name  string `json:"name"`
	Count int    `json:"count,omitempty"`
}

// WidgetLimits is written also when it is empty.
type WidgetLimits struct {
	Max int `json:"max,omitempty"`
}

// DeepCopyObject is generated in real life.
func (w *Widget) DeepCopyObject() runtime.Object {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	c := &Widget{}
	if err := json.Unmarshal(text, c); err != nil {
		panic(err)
	}
	return c
}

func widgets() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(widgetKind, &Widget{})
	return s
}

// post sends a body as an API server does.
func post(h http.Handler, body []byte, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/x", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec
}

// ask posts a review of req and gives the answer in it.
func ask(t *testing.T, h http.Handler, req admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  &req,
	})
	if err != nil {
		t.Fatal(err)
	}
	rec := post(h, body)
	if rec.Code != http.StatusOK {
		t.Fatalf("status %d: %s", rec.Code, rec.Body)
	}
	return answerIn(t, rec)
}

func answerIn(t *testing.T, rec *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(rec.Body.Bytes(), &review); err != nil {
		t.Fatalf("%v in %s", err, rec.Body)
	}
	if review.Response == nil || review.Kind != "AdmissionReview" {
		t.Fatalf("no answer in %s", rec.Body)
	}
	return review.Response
}

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }
