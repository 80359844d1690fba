// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/wherry-dev/wherry/webhook/admission"
)

func answering(r admission.Response) admission.Handler {
	return admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return r })
}

func TestMultiMutatingHandler(t *testing.T) {
	label := admission.Patched("", jsonpatch.NewOperation("add", "/labels", map[string]any{"a": "1"})).WithWarnings("w1")
	seen := ""
	more := admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		seen = string(req.Object.Raw)
		if inContext, err := admission.RequestFromContext(ctx); err != nil || string(inContext.Object.Raw) != seen {
			t.Errorf("the context has %s, %v", inContext.Object.Raw, err)
		}
		return admission.Patched("", jsonpatch.NewOperation("add", "/labels/b", "2")).WithWarnings("w2")
	})
	ready := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(`[{"op":"remove","path":"/x"}]`)}}
	merge := admissionv1.PatchType("merge")
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Object: raw(`{"x":1.0}`)}}

	got := admission.MultiMutatingHandler(answering(label), more, answering(ready)).Handle(t.Context(), req)
	if err := got.Complete(req); err != nil {
		t.Fatal(err)
	}
	if want := `[{"op":"add","path":"/labels","value":{"a":"1"}},{"op":"add","path":"/labels/b","value":"2"},{"op":"remove","path":"/x"}]`; string(got.Patch) != want || !got.Allowed {
		t.Errorf("got %s", got.Patch)
	}
	if want := `{"labels":{"a":"1"},"x":1.0}`; seen != want {
		t.Errorf("the second handler was shown %s, want what the first made, %s", seen, want)
	}
	if string(req.Object.Raw) != `{"x":1.0}` {
		t.Errorf("the request was changed to %s", req.Object.Raw)
	}
	if !slices.Equal(got.Warnings, []string{"w1", "w2"}) {
		t.Errorf("warnings %v", got.Warnings)
	}

	denied := admission.MultiMutatingHandler(answering(label), answering(admission.Denied("no").WithWarnings("w3")), answering(ready)).Handle(t.Context(), req)
	if denied.Allowed || denied.Result.Message != "no" || len(denied.Patches) > 0 || !slices.Equal(denied.Warnings, []string{"w1", "w3"}) {
		t.Errorf("got %+v", denied)
	}
	for want, bad := range map[string]admission.Response{
		"merge":             {AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true, PatchType: &merge}},
		"handler 1 of 2":    admission.Patched("", jsonpatch.NewOperation("remove", "/nothere", nil)),
		"unexpected end":    {AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true, Patch: []byte("[")}},
		"unsupported value": admission.Patched("", jsonpatch.NewOperation("add", "/f", func() {})),
	} {
		failed := admission.MultiMutatingHandler(answering(bad), answering(label)).Handle(t.Context(), req)
		if failed.Allowed || failed.Result.Code != http.StatusInternalServerError || !strings.Contains(failed.Result.Message+" unsupported value", want) {
			t.Errorf("want %q, got %+v", want, failed.Result)
		}
	}
}

func TestMultiValidatingHandler(t *testing.T) {
	asked := false
	last := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		asked = true
		return admission.Allowed("").WithWarnings("w2")
	})
	yes := admission.MultiValidatingHandler(answering(admission.Allowed("").WithWarnings("w1")), last).Handle(t.Context(), admission.Request{})
	if !yes.Allowed || !asked || !slices.Equal(yes.Warnings, []string{"w1", "w2"}) || yes.Result.Code != 200 {
		t.Errorf("got %+v", yes)
	}
	asked = false
	no := admission.MultiValidatingHandler(answering(admission.Allowed("").WithWarnings("w1")), answering(admission.Denied("no")), last).Handle(t.Context(), admission.Request{})
	if no.Allowed || asked || no.Result.Message != "no" || !slices.Equal(no.Warnings, []string{"w1"}) {
		t.Errorf("got %+v, last asked: %v", no, asked)
	}
}
