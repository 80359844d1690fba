// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherry-dev/wherry/webhook/review"
)

// An envelope is an admission review without what is in its objects.
type envelope struct {
	metav1.TypeMeta
	Request
	asks bool // there is a request
}

// read fills an empty envelope. The request's objects stay in body, which must not change any more. An error is always a
// *review.Refusal.
func (e *envelope) read(body []byte) error {
	var err error
	if e.scan(body) {
		err = review.Check(e, admissionv1.GroupName, "AdmissionReview", "v1", "v1beta1")
	} else {
		err = e.decode(body)
	}
	if err == nil && !e.asks {
		err = &review.Refusal{Code: http.StatusBadRequest, Reason: "the admission review has no request"}
	}
	return err
}

// decode reads what scan does not. It finds the words for what is wrong.
func (e *envelope) decode(body []byte) error {
	whole := &admissionv1.AdmissionReview{}
	if err := review.Unmarshal(body, whole, admissionv1.GroupName, "AdmissionReview", "v1", "v1beta1"); err != nil {
		return err
	}
	*e = envelope{TypeMeta: whole.TypeMeta, asks: whole.Request != nil}
	if e.asks {
		e.AdmissionRequest = *whole.Request
	}
	return nil
}

// scan reads body to the same effect as decode, without reflection. It is false for what it does not read: what is no review,
// and what API servers do not write. There may be anything in the envelope then.
func (e *envelope) scan(body []byte) bool {
	s := newScanner(body)
	return s.next() == '{' && scanObject(s, reviewFields, e) && s.next() == 0 && s.at == len(body)
}

var reviewFields = []field[envelope]{
	{"kind", func(s *scanner, e *envelope) bool { return scanString(s, &e.TypeMeta.Kind) }},
	{"apiVersion", func(s *scanner, e *envelope) bool { return scanString(s, &e.APIVersion) }},
	{"request", func(s *scanner, e *envelope) bool {
		e.asks = s.next() != 'n'
		return scanObject(s, requestFields, &e.AdmissionRequest)
	}},
	{"response", func(*scanner, *envelope) bool { return false }},
}

var requestFields = []field[admissionv1.AdmissionRequest]{ // as API servers order them
	{"uid", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanString(s, &r.UID) }},
	{"kind", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanKind(s, &r.Kind) }},
	{"resource", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanResource(s, &r.Resource) }},
	{"subResource", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanString(s, &r.SubResource) }},
	{"requestKind", func(s *scanner, r *admissionv1.AdmissionRequest) bool {
		return scanPointer(s, &r.RequestKind, scanKind)
	}},
	{"requestResource", func(s *scanner, r *admissionv1.AdmissionRequest) bool {
		return scanPointer(s, &r.RequestResource, scanResource)
	}},
	{"requestSubResource", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanString(s, &r.RequestSubResource) }},
	{"name", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanString(s, &r.Name) }},
	{"namespace", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanString(s, &r.Namespace) }},
	{"operation", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanString(s, &r.Operation) }},
	{"userInfo", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanObject(s, userFields, &r.UserInfo) }},
	{"object", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanRaw(s, &r.Object) }},
	{"oldObject", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanRaw(s, &r.OldObject) }},
	{"dryRun", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanPointer(s, &r.DryRun, scanBool) }},
	{"options", func(s *scanner, r *admissionv1.AdmissionRequest) bool { return scanRaw(s, &r.Options) }},
}

func scanKind(s *scanner, k *metav1.GroupVersionKind) bool { return scanObject(s, kindFields, k) }

var kindFields = []field[metav1.GroupVersionKind]{
	{"group", func(s *scanner, k *metav1.GroupVersionKind) bool { return scanString(s, &k.Group) }},
	{"version", func(s *scanner, k *metav1.GroupVersionKind) bool { return scanString(s, &k.Version) }},
	{"kind", func(s *scanner, k *metav1.GroupVersionKind) bool { return scanString(s, &k.Kind) }},
}

func scanResource(s *scanner, r *metav1.GroupVersionResource) bool {
	return scanObject(s, resourceFields, r)
}

var resourceFields = []field[metav1.GroupVersionResource]{
	{"group", func(s *scanner, r *metav1.GroupVersionResource) bool { return scanString(s, &r.Group) }},
	{"version", func(s *scanner, r *metav1.GroupVersionResource) bool { return scanString(s, &r.Version) }},
	{"resource", func(s *scanner, r *metav1.GroupVersionResource) bool { return scanString(s, &r.Resource) }},
}

var userFields = []field[authenticationv1.UserInfo]{
	{"username", func(s *scanner, u *authenticationv1.UserInfo) bool { return scanString(s, &u.Username) }},
	{"uid", func(s *scanner, u *authenticationv1.UserInfo) bool { return scanString(s, &u.UID) }},
	{"groups", func(s *scanner, u *authenticationv1.UserInfo) bool { return scanStrings(s, &u.Groups) }},
	{"extra", func(s *scanner, u *authenticationv1.UserInfo) bool { return scanExtra(s, &u.Extra) }},
}

func scanExtra(s *scanner, into *map[string]authenticationv1.ExtraValue) bool {
	if s.word("null") {
		return true
	}
	if !s.take('{') {
		return false
	}
	*into = map[string]authenticationv1.ExtraValue{}
	if s.take('}') {
		return true
	}
	for {
		var key string
		var values authenticationv1.ExtraValue
		if s.next() != '"' || !scanString(s, &key) || !s.take(':') || !scanStrings(s, &values) {
			return false
		}
		(*into)[key] = values
		if !s.take(',') {
			return s.take('}')
		}
	}
}

// scanRaw leaves a value where it is. Null is none.
func scanRaw(s *scanner, into *runtime.RawExtension) bool {
	if s.word("null") {
		return true
	}
	text, ok := s.span()
	into.Raw = text
	return ok
}

// usual are texts that most reviews have: one of them is not made anew for each.
var usual = func() map[string]string {
	texts := map[string]string{}
	for _, text := range []string{
		"AdmissionReview", "admission.k8s.io/v1", "admission.k8s.io/v1beta1",
		string(admissionv1.Create), string(admissionv1.Update), string(admissionv1.Delete), string(admissionv1.Connect),
		"v1", "v1alpha1", "v1beta1", "apps", "batch", "Pod", "pods", "Deployment", "deployments", "status",
		"system:authenticated", "system:masters", "system:serviceaccounts",
	} {
		texts[text] = text
	}
	return texts
}()
