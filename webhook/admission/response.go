// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Response is the answer to a Request.
type Response struct {
	// Patches are the changes to the object. If there are any, they become the answer's Patch and replace what is there.
	Patches []jsonpatch.JsonPatchOperation

	admissionv1.AdmissionResponse
}

var jsonPatchType = admissionv1.PatchTypeJSONPatch

// Complete fills in what the answer must have: the request's UID, a code, and the patch made of Patches.
func (r *Response) Complete(req Request) error {
	r.UID = req.UID
	if r.Result == nil {
		r.Result = &metav1.Status{}
	}
	if r.Result.Code == 0 {
		r.Result.Code = http.StatusOK
	}
	if len(r.Patches) == 0 {
		return nil
	}
	patch, err := json.Marshal(r.Patches)
	if err != nil {
		return err
	}
	kind := jsonPatchType // a copy of its own: the answer is the handler's to change
	r.Patch, r.PatchType = patch, &kind
	return nil
}

// WithWarnings adds warnings behind those that are there. API servers show the caller each, cut to 256 characters or less.
func (r Response) WithWarnings(warnings ...string) Response {
	r.Warnings = append(r.Warnings[:len(r.Warnings):len(r.Warnings)], warnings...)
	return r
}

// Allowed lets the request through. message may be "".
func Allowed(message string) Response { return ValidationResponse(true, message) }

// Denied refuses the request with status 403. message is what the caller is told, and may be "".
func Denied(message string) Response { return ValidationResponse(false, message) }

// Patched lets the request through with changes. message may be "".
func Patched(message string, patches ...jsonpatch.JsonPatchOperation) Response {
	response := Allowed(message)
	response.Patches = patches
	return response
}

// Errored refuses the request because it could not be judged. code is the HTTP status that the caller is told, with err's text.
func Errored(code int32, err error) Response {
	result := &metav1.Status{Code: code}
	if err != nil {
		result.Message = err.Error()
	}
	return Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: result}}
}

// ValidationResponse is Allowed or Denied.
func ValidationResponse(allowed bool, message string) Response {
	result := &metav1.Status{Code: http.StatusOK, Message: message}
	if !allowed {
		result.Code, result.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	return Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: allowed, Result: result}}
}

// PatchResponseFromRaw lets the request through with the changes that make current of original, two JSON documents. It is an
// Errored response if one of them is none. Numbers count as changed only if their value is another one, however large it is.
func PatchResponseFromRaw(original, current []byte) Response {
	patches, err := diffTexts(original, current)
	if err != nil {
		return Errored(http.StatusInternalServerError, err)
	}
	kind := jsonPatchType
	return Response{
		Patches:           patches,
		AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true, PatchType: &kind},
	}
}
