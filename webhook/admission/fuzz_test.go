// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/wherry-dev/wherry/webhook/admission"
)

// FuzzAdmission posts anything: the answer is always a review, with a status that says what it is.
func FuzzAdmission(f *testing.F) {
	for _, seed := range []string{
		v1Review, "", "{", "null", "[]", `{"kind":"AdmissionReview"}`,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"parts":[{"name":"a","x":1.0}],"extra":{}}}}}`,
		`{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u","operation":"UPDATE","object":{"spec":{"tags":[null],"options":{"a":"\ud800"}}},"oldObject":{}}}`,
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"DELETE","oldObject":{"spec":null}}}`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	widget := defaultWith[*Widget](func(_ context.Context, w *Widget) error {
		w.Spec.Colour += "x"
		w.Spec.Parts = append([]WidgetPart{{Name: "first"}}, w.Spec.Parts...)
		return nil
	})
	hooks := map[bool]*admission.Webhook{
		false: admission.WithDefaulter(widgets(), widget),
		true:  admission.WithDefaulter(widgets(), widget, admission.DefaulterRemoveUnknownOrOmitableFields),
	}
	for _, hook := range hooks {
		hook.WithRecoverPanic(false)
	}
	validating := admission.WithValidator(widgets(), &judge[*Widget]{}).WithRecoverPanic(false)
	f.Fuzz(func(t *testing.T, body []byte, remove bool) {
		rec := post(hooks[remove], body)
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(rec.Body.Bytes(), &review); err != nil || review.Response == nil {
			t.Fatalf("no review in %d %s: %v", rec.Code, rec.Body, err)
		}
		if (rec.Code == 200) == (review.Response.Result.Code == int32(rec.Code) && rec.Code != 200) {
			t.Fatalf("status %d with an answer of %d", rec.Code, review.Response.Result.Code)
		}
		if patch := review.Response.Patch; len(patch) > 0 && !json.Valid(patch) {
			t.Fatalf("no patch: %s", patch)
		}
		if rec := post(validating, body); rec.Code != 200 && rec.Code != 400 {
			t.Fatalf("status %d", rec.Code)
		}
	})
}
