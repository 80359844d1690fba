// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/webhook/review"
)

// maxKept is the largest buffer for an answer that is kept for others.
const maxKept = 64 << 10

var answers = sync.Pool{New: func() any { return new([]byte) }}

// answer writes a review with the answer. Most answers say little, so they are written without reflection.
func answer(w http.ResponseWriter, log logr.Logger, status int, is metav1.TypeMeta, response *admissionv1.AdmissionResponse) {
	buffer := answers.Get().(*[]byte)
	body, err := appendReview((*buffer)[:0], is, response)
	if err != nil {
		log.Error(err, "unable to encode the response")
		http.Error(w, "the response could not be encoded", http.StatusInternalServerError)
		return
	}
	if review.Send(w, log, status, body) && cap(body) <= maxKept {
		*buffer = body
		answers.Put(buffer)
	}
}

// appendReview appends to b what json.Marshal makes of an AdmissionReview with response.
func appendReview(b []byte, is metav1.TypeMeta, response *admissionv1.AdmissionResponse) ([]byte, error) {
	w := &writer{text: append(b, '{')}
	w.optional(`"kind":`, is.Kind)
	w.optional(`"apiVersion":`, is.APIVersion)
	w.key(`"response":`)
	w.response(response)
	w.text = append(w.text, '}')
	return w.text, w.err
}

// A writer appends values to a text. It keeps the first error.
type writer struct {
	text []byte
	err  error
}

// key begins an object's field. key has quotes and colon.
func (w *writer) key(key string) {
	if w.text[len(w.text)-1] != '{' {
		w.text = append(w.text, ',')
	}
	w.text = append(w.text, key...)
}

// optional is a field that is not there if it is empty.
func (w *writer) optional(key, value string) {
	if value != "" {
		w.key(key)
		w.string(value)
	}
}

func (w *writer) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			w.any(s)
			return
		}
	}
	w.text = append(append(append(w.text, '"'), s...), '"')
}

// any is a value of any type.
func (w *writer) any(value any) {
	text, err := json.Marshal(value)
	if w.err == nil {
		w.err = err
	}
	w.text = append(w.text, text...)
}

func (w *writer) response(r *admissionv1.AdmissionResponse) {
	w.text = append(w.text, `{"uid":`...)
	w.string(string(r.UID))
	w.key(`"allowed":`)
	w.text = strconv.AppendBool(w.text, r.Allowed)
	if r.Result != nil {
		w.key(`"status":`)
		w.status(r.Result)
	}
	if len(r.Patch) > 0 {
		w.key(`"patch":`)
		w.text = append(base64.StdEncoding.AppendEncode(append(w.text, '"'), r.Patch), '"')
	}
	if r.PatchType != nil {
		w.key(`"patchType":`)
		w.string(string(*r.PatchType))
	}
	if len(r.AuditAnnotations) > 0 {
		w.key(`"auditAnnotations":`)
		w.any(r.AuditAnnotations)
	}
	if len(r.Warnings) > 0 {
		w.key(`"warnings":`)
		w.any(r.Warnings)
	}
	w.text = append(w.text, '}')
}

func (w *writer) status(s *metav1.Status) {
	if s.TypeMeta != (metav1.TypeMeta{}) || s.ListMeta != (metav1.ListMeta{}) || s.Details != nil {
		w.any(s)
		return
	}
	w.text = append(w.text, `{"metadata":{}`...)
	w.optional(`"status":`, s.Status)
	w.optional(`"message":`, s.Message)
	w.optional(`"reason":`, string(s.Reason))
	if s.Code != 0 {
		w.key(`"code":`)
		w.text = strconv.AppendInt(w.text, int64(s.Code), 10)
	}
	w.text = append(w.text, '}')
}
