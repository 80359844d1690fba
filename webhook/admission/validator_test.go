// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherry-dev/wherry/webhook/admission"
)

// judge notes which question it is asked and gives one answer to all.
type judge[T runtime.Object] struct {
	warnings admission.Warnings
	err      error
	asked    []string
}

func nameOf(obj runtime.Object) string { return obj.(metav1.Object).GetName() }

func (j *judge[T]) ValidateCreate(_ context.Context, obj T) (admission.Warnings, error) {
	j.asked = append(j.asked, "create "+nameOf(obj))
	return j.warnings, j.err
}

func (j *judge[T]) ValidateUpdate(_ context.Context, old, obj T) (admission.Warnings, error) {
	j.asked = append(j.asked, "update "+nameOf(old)+" to "+nameOf(obj))
	return j.warnings, j.err
}

func (j *judge[T]) ValidateDelete(ctx context.Context, obj T) (admission.Warnings, error) {
	if _, err := admission.RequestFromContext(ctx); err != nil {
		return nil, err
	}
	j.asked = append(j.asked, "delete "+nameOf(obj))
	return j.warnings, j.err
}

func widgetNamed(name string) runtime.RawExtension {
	return raw(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"` + name + `"}}`)
}

func TestValidatorOperations(t *testing.T) {
	tests := map[string]struct {
		req  admissionv1.AdmissionRequest
		want string
		code int32
	}{
		"create":              {admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: widgetNamed("new")}, "create new", 200},
		"update":              {admissionv1.AdmissionRequest{Operation: admissionv1.Update, Object: widgetNamed("new"), OldObject: widgetNamed("old")}, "update old to new", 200},
		"delete":              {admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: widgetNamed("old")}, "delete old", 200},
		"connect":             {admissionv1.AdmissionRequest{Operation: admissionv1.Connect}, "", 200},
		"unknown":             {admissionv1.AdmissionRequest{Operation: "BEND"}, "", 400},
		"create, no object":   {admissionv1.AdmissionRequest{Operation: admissionv1.Create}, "", 400},
		"update, no object":   {admissionv1.AdmissionRequest{Operation: admissionv1.Update, OldObject: widgetNamed("old")}, "", 400},
		"update, no old one":  {admissionv1.AdmissionRequest{Operation: admissionv1.Update, Object: widgetNamed("new")}, "", 400},
		"delete, no old one":  {admissionv1.AdmissionRequest{Operation: admissionv1.Delete, Object: widgetNamed("new")}, "", 400},
		"create, other shape": {admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: raw(`{"metadata":7}`)}, "", 400},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			typed, custom := &judge[*Widget]{}, &judge[runtime.Object]{}
			for form, got := range map[string]struct {
				hook  *admission.Webhook
				asked *[]string
			}{
				"typed":  {admission.WithValidator(widgets(), typed), &typed.asked},
				"custom": {admission.WithCustomValidator(widgets(), &Widget{}, custom), &custom.asked},
			} {
				answer := ask(t, got.hook, test.req)
				if answer.Result.Code != test.code || answer.Allowed != (test.code == 200) {
					t.Errorf("%s: got %+v", form, answer)
				}
				if all := strings.Join(*got.asked, ";"); all != test.want {
					t.Errorf("%s: asked %q, want %q", form, all, test.want)
				}
			}
		})
	}
}

// WH-2: what a validator says reaches the caller.
func TestValidatorErrorsReachTheCaller(t *testing.T) {
	invalid := apierrors.NewInvalid(widgetKind.GroupKind(), "w", field.ErrorList{
		field.Invalid(field.NewPath("spec", "size"), 0, "too small"),
		field.Required(field.NewPath("spec", "colour"), ""),
	})
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "w", errors.New("changed"))
	tests := map[string]struct {
		err      error
		warnings admission.Warnings
		code     int32
		reason   metav1.StatusReason
		message  []string
		causes   int
	}{
		"invalid":              {err: invalid, code: 422, reason: metav1.StatusReasonInvalid, message: []string{"too small"}, causes: 2},
		"invalid, wrapped":     {err: fmt.Errorf("ctx: %w", invalid), code: 422, reason: metav1.StatusReasonInvalid, message: []string{"ctx: ", "too small"}, causes: 2},
		"joined":               {err: errors.Join(errors.New("plain"), conflict), code: 409, reason: metav1.StatusReasonConflict, message: []string{"plain", "changed"}},
		"plain":                {err: errors.New("plain"), code: 403, reason: metav1.StatusReasonForbidden, message: []string{"plain"}},
		"warnings":             {warnings: admission.Warnings{"one", "two"}, code: 200},
		"invalid and warnings": {err: invalid, warnings: admission.Warnings{"one"}, code: 422, reason: metav1.StatusReasonInvalid, causes: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hook, err := admission.StandaloneWebhook(admission.WithValidator(widgets(), &judge[*Widget]{warnings: test.warnings, err: test.err}),
				admission.StandaloneOptions{MetricsPath: "/wh-2/" + name})
			if err != nil {
				t.Fatal(err)
			}
			before := counted(t, "controller_runtime_webhook_requests_total")
			answer := ask(t, hook, admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: widgetNamed("w")})
			if got := counted(t, "controller_runtime_webhook_requests_total") - before; got != 1 {
				t.Errorf("counted %v requests", got)
			}
			if answer.Allowed != (test.err == nil) || answer.Result.Code != test.code || answer.Result.Reason != test.reason {
				t.Errorf("got %v %+v", answer.Allowed, answer.Result)
			}
			if !slices.Equal(answer.Warnings, test.warnings) {
				t.Errorf("warnings %v", answer.Warnings)
			}
			for _, part := range test.message {
				if !strings.Contains(answer.Result.Message, part) {
					t.Errorf("no %q in %q", part, answer.Result.Message)
				}
			}
			if test.causes == 0 {
				return
			}
			seen := &apierrors.StatusError{ErrStatus: *answer.Result}
			if !apierrors.IsInvalid(seen) || answer.Result.Details.Kind != "Widget" || len(answer.Result.Details.Causes) != test.causes || answer.Result.Details.Causes[0].Field != "spec.size" {
				t.Errorf("details %+v", answer.Result.Details)
			}
		})
	}
}
