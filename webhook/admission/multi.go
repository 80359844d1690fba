// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
	jsonpatchv4 "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
)

// MultiMutatingHandler asks handlers one after the other, each with the object as those before it have changed it, and answers
// with all of their patches. It ends with the first that does not allow the request, and gives its answer. The warnings of all
// that were asked are in the answer.
func MultiMutatingHandler(handlers ...Handler) Handler {
	return mutatingHandlers(slices.Clone(handlers))
}

type mutatingHandlers []Handler

func (hs mutatingHandlers) Handle(ctx context.Context, req Request) Response {
	var patches []jsonpatch.JsonPatchOperation
	var warnings []string
	for i, h := range hs {
		response := h.Handle(ctx, req)
		warnings = append(warnings, response.Warnings...)
		response.Warnings = warnings
		if !response.Allowed {
			return response
		}
		more, err := patchesOf(response)
		if err == nil && len(more) > 0 && i < len(hs)-1 {
			req.Object.Raw, err = apply(more, req.Object.Raw)
			ctx = NewContextWithRequest(ctx, req)
		}
		if err != nil {
			return Errored(http.StatusInternalServerError, fmt.Errorf("patch of handler %d of %d: %w", i+1, len(hs), err)).WithWarnings(warnings...)
		}
		patches = append(patches, more...)
	}
	return Patched("", patches...).WithWarnings(warnings...)
}

// patchesOf gives the patches of a handler's answer, however the handler put them.
func patchesOf(response Response) ([]jsonpatch.JsonPatchOperation, error) {
	if kind := response.PatchType; kind != nil && *kind != admissionv1.PatchTypeJSONPatch {
		return nil, fmt.Errorf("its type is %s, only %s is known", *kind, admissionv1.PatchTypeJSONPatch)
	}
	if len(response.Patches) > 0 || len(response.Patch) == 0 {
		return response.Patches, nil
	}
	var patches []jsonpatch.JsonPatchOperation
	return patches, json.Unmarshal(response.Patch, &patches)
}

// apply gives object with patches applied.
func apply(patches []jsonpatch.JsonPatchOperation, object []byte) ([]byte, error) {
	text, err := json.Marshal(patches)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatchv4.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	return patch.Apply(object)
}

// MultiValidatingHandler asks handlers one after the other. It ends with the first that does not allow the request, and gives its
// answer. The warnings of all that were asked are in the answer.
func MultiValidatingHandler(handlers ...Handler) Handler {
	return validatingHandlers(slices.Clone(handlers))
}

type validatingHandlers []Handler

func (hs validatingHandlers) Handle(ctx context.Context, req Request) Response {
	var warnings []string
	for _, h := range hs {
		response := h.Handle(ctx, req)
		warnings = append(warnings, response.Warnings...)
		if !response.Allowed {
			response.Warnings = warnings
			return response
		}
	}
	return Allowed("").WithWarnings(warnings...)
}
