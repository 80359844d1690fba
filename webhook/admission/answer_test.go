// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func compareAnswer(t *testing.T, is metav1.TypeMeta, response *admissionv1.AdmissionResponse) {
	t.Helper()
	want, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: is, Response: response})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := appendReview(nil, is, response); err != nil || string(got) != string(want) {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestAnswersAreWrittenAsByTheEncoder(t *testing.T) {
	kind, none := admissionv1.PatchTypeJSONPatch, admissionv1.PatchType("")
	left := int64(3)
	is := metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}
	for _, response := range []admissionv1.AdmissionResponse{
		{},
		{UID: "u", Allowed: true, Result: &metav1.Status{Code: 200}},
		{Result: &metav1.Status{Code: 403, Status: "Failure", Reason: metav1.StatusReasonForbidden, Message: "no"}},
		{Result: &metav1.Status{}},
		{Result: &metav1.Status{Code: -1, TypeMeta: metav1.TypeMeta{Kind: "Status"}}},
		{Result: &metav1.Status{ListMeta: metav1.ListMeta{RemainingItemCount: &left}}},
		{Result: &metav1.Status{Details: &metav1.StatusDetails{Name: "n", Causes: []metav1.StatusCause{{Field: "f"}}}}},
		{Patch: []byte{}, PatchType: &none, AuditAnnotations: map[string]string{}, Warnings: []string{}},
		{Patch: []byte("[{}]"), PatchType: &kind, AuditAnnotations: map[string]string{"b": "<", "a": "\u2028"}, Warnings: []string{"w", ""}},
	} {
		compareAnswer(t, is, &response)
		compareAnswer(t, metav1.TypeMeta{}, &response)
	}
	if n := reflect.TypeFor[admissionv1.AdmissionResponse]().NumField(); n != 7 {
		t.Errorf("an answer has %d fields, 7 are written", n)
	}
	if n := reflect.TypeFor[metav1.Status]().NumField(); n != 7 {
		t.Errorf("a status has %d fields, 7 are written", n)
	}
}

// leaving is a caller that hangs up. HTTP/2's server may read on in what it was given to write.
type leaving struct {
	*httptest.ResponseRecorder
	given []byte
}

func (l *leaving) Write(b []byte) (int, error) {
	l.given = b
	return 0, errors.New("the stream is closed")
}

func TestAnAnswerThatWasNotTakenStays(t *testing.T) {
	gone := &leaving{ResponseRecorder: httptest.NewRecorder()}
	answer(gone, logr.Discard(), 200, metav1.TypeMeta{}, &admissionv1.AdmissionResponse{UID: "first"})
	was := string(gone.given)
	for range 10 {
		answer(httptest.NewRecorder(), logr.Discard(), 200, metav1.TypeMeta{}, &admissionv1.AdmissionResponse{UID: "other"})
	}
	if string(gone.given) != was {
		t.Errorf("%s was overwritten with %s", was, gone.given)
	}
}

// FuzzAnswer writes any texts.
func FuzzAnswer(f *testing.F) {
	f.Add("u", "message", "reason", []byte("[]"), int32(200), true)
	f.Add("\x00\"\\<>&\u2028\xff\x7f~ ü", "", "", []byte(nil), int32(0), false)
	f.Fuzz(func(t *testing.T, uid, message, reason string, patch []byte, code int32, allowed bool) {
		kind := admissionv1.PatchType(reason)
		compareAnswer(t, metav1.TypeMeta{Kind: message, APIVersion: reason}, &admissionv1.AdmissionResponse{
			UID: types.UID(uid), Allowed: allowed, Patch: patch, PatchType: &kind,
			Result: &metav1.Status{Message: message, Reason: metav1.StatusReason(reason), Status: uid, Code: code},
		})
	})
}
