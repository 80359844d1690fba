// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// wholeReview is a review with all that an API server writes.
func wholeReview(t testing.TB) []byte {
	t.Helper()
	dry := true
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u-1", SubResource: "scale", RequestSubResource: "status", Name: "n", Namespace: "ns", Operation: admissionv1.Update, DryRun: &dry,
			Kind:            metav1.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"},
			Resource:        metav1.GroupVersionResource{Group: "g", Version: "v1", Resource: "ks"},
			RequestKind:     &metav1.GroupVersionKind{Group: "g", Version: "v2", Kind: "K"},
			RequestResource: &metav1.GroupVersionResource{Group: "g", Version: "v2", Resource: "ks"},
			UserInfo: authenticationv1.UserInfo{
				Username: "system:serviceaccount:ns:me", UID: "u-2", Groups: []string{"system:authenticated", "a", "", "b"},
				Extra: map[string]authenticationv1.ExtraValue{"k/id": {"x", "y"}, "none": {}, "nil": nil},
			},
			Object:    runtime.RawExtension{Raw: []byte(`{"a":[1,-0.5e+3,true,false,null,"\u00e4\n",{}]}`)},
			OldObject: runtime.RawExtension{Raw: []byte(`{"a":[]}`)},
			Options:   runtime.RawExtension{Raw: []byte(`{"kind":"UpdateOptions"}`)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// reviews are bodies, and whether they are scanned. Those that are not are left to the full decoder.
func reviews(t testing.TB) map[string]bool {
	whole := string(wholeReview(t))
	request := func(fields string) string { return `{"request":{` + fields + `}}` }
	return map[string]bool{
		whole:             true,
		" \t\r\n" + whole: true,
		whole + "\n":      true,
		strings.NewReplacer(`:`, ` : `, `,`, " ,\n").Replace(whole): true,
		`{}`:               true,
		`{"request":null}`: true,
		`{"kind":null,"apiVersion":null,"request":{}}`:                                                     true,
		request(`"unknown":{"a":[[],{},1]},"uid":"u"`):                                                     true,
		request(`"UID":"u","Object":{}`):                                                                   true, // names have a case
		request(`"uid":null,"kind":null,"requestKind":null,"userInfo":null,"object":null,"dryRun":null`):   true,
		request(`"kind":{},"requestResource":{"resource":"r"},"userInfo":{"groups":null,"extra":null}`):    true,
		request(`"userInfo":{"groups":[],"extra":{}}`):                                                     true,
		request(`"userInfo":{"groups":[null,"\u003ca","1","2","3","4","5","6","7","8"]}`):                  true,
		request(`"userInfo":{"extra":{"a":null,"b":["c",null],"\u0061":["twice"]}}`):                       true,
		request(`"name":"\ud83d\ude00 \ud800 ` + "\xff" + ` ü"`):                                           true,
		request(`"object":7,"oldObject":"x` + "\xff" + `","options":[]`):                                   true,
		request(`"object":` + strings.Repeat("[", maxDepth-2) + strings.Repeat("]", maxDepth-2)):           true,
		request(`"object":` + strings.Repeat("[", maxDepth-1) + strings.Repeat("]", maxDepth-1)):           false,
		request(`"object":` + strings.Repeat(`{"a":`, maxDepth-1) + "1" + strings.Repeat("}", maxDepth-1)): false,
		request(`"object":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)):                   false,
		request(`"uid":"a","uid":"b"`):                                                                     false,
		request(`"kind":{"group":"a"},"kind":{"version":"b"}`):                                             false,
		request(`"object":{"long":"text"},"object":{}`):                                                    false,
		`{"request":{"uid":"a"},"request":null}`:                                                           false,
		`{"\u0072equest":{"uid":"a"}}`:                                                                     false,
		`{"request":{},"response":{"allowed":7}}`:                                                          false,
		`{"request":{},"response":null}`:                                                                   false,
		"":                                                                                                 false,
		"null":                                                                                             false,
		"[]":                                                                                               false,
		"7":                                                                                                false,
		"{}{}":                                                                                             false,
		"{}\x00":                                                                                           false,
		"\ufeff{}":                                                                                         false,
		`{"request":[]}`:                                                                                   false,
		`{"request":"x"}`:                                                                                  false,
		`{"request":nul}`:                                                                                  false,
		request(`"uid":7`):                                                                                 false,
		request(`"dryRun":"true"`):                                                                         false,
		request(`"dryRun":truer`):                                                                          false,
		request(`"userInfo":{"groups":[7]}`):                                                               false,
		request(`"userInfo":{"groups":{}}`):                                                                false,
		request(`"userInfo":{"groups":["a",]}`):                                                            false,
		request(`"userInfo":{"extra":{"a":"b"}}`):                                                          false,
		request(`"userInfo":{"extra":{null:[]}}`):                                                          false,
		request(`"userInfo":{"extra":{"a":[]},}`):                                                          false,
		request(`"uid":"a",`):                                                                              false,
		request(`"uid" "a"`):                                                                               false,
		request(`uid:"a"`):                                                                                 false,
		request(`"uid":"a` + "\n" + `"`):                                                                   false,
		request(`"uid":"\x"`):                                                                              false,
		request(`"uid":"\u12g4"`):                                                                          false,
		`{"request":{"uid":"\u12`:                                                                          false,
		`{"request":{"uid":"\`:                                                                             false,
		request(`"object":01`):                                                                             false,
		request(`"object":-`):                                                                              false,
		request(`"object":1.`):                                                                             false,
		request(`"object":1e`):                                                                             false,
		request(`"object":1e+`):                                                                            false,
		request(`"object":.5`):                                                                             false,
		request(`"object":+1`):                                                                             false,
		request(`"object":[1,]`):                                                                           false,
		request(`"object":[1 2]`):                                                                          false,
		request(`"object":{"a":1,}`):                                                                       false,
		request(`"object":{"a"}`):                                                                          false,
		request(`"object":{"a":1 "b":2}`):                                                                  false,
		request(`"object":{"a":tru}`):                                                                      false,
		request(`"object":{"a":"` + "\t" + `"}`):                                                           false,
		request(`"object":`):                                                                               false,
		`{"request":{"object":{`:                                                                           false,
		`{"request":{"object":[`:                                                                           false,
		`{"request":{"object":{"a":1`:                                                                      false,
		`{"request":`:                                                                                      false,
		`{"kind":"Pod","apiVersion":"v1","request":{}}`:                                                    true,
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u"},"status":{}}`: true,
	}
}

// compareReads reads body in both ways, and tells whether it was scanned.
func compareReads(t *testing.T, body []byte) bool {
	t.Helper()
	var scanned, decoded, read envelope
	decodeErr := decoded.decode(body)
	ok, readErr := scanned.scan(body), read.read(body)
	if decodeErr != nil || !decoded.asks {
		if readErr == nil || decodeErr != nil && readErr.Error() != decodeErr.Error() {
			t.Errorf("%.200q: got error %v, want %v", body, readErr, decodeErr)
		}
		return ok
	}
	if readErr != nil || !reflect.DeepEqual(read, decoded) {
		t.Errorf("%.200q:\ngot  %+v, %v\nwant %+v", body, read, readErr, decoded)
	}
	return ok
}

func TestReviewsAreReadAsByTheFullDecoder(t *testing.T) {
	for body, scanned := range reviews(t) {
		if got := compareReads(t, []byte(body)); got != scanned {
			t.Errorf("%.200q: scanned %v, want %v", body, got, scanned)
		}
	}
}

// Nothing is taken for whole that is cut off, and a wrong byte is found wherever it is.
func TestDamagedReviews(t *testing.T) {
	whole := wholeReview(t)
	for i := range whole {
		if compareReads(t, whole[:i]) {
			t.Errorf("scanned %q", whole[:i])
		}
		for _, c := range []byte("\x1f\"\\{}:,0.e+n \xff") {
			damaged := append([]byte(nil), whole...)
			damaged[i] = c
			compareReads(t, damaged)
		}
	}
}

// The full decoder's types must not get a field that scan does not know.
func TestScanKnowsAllFields(t *testing.T) {
	for _, test := range []struct {
		of    any
		known int
	}{
		{admissionv1.AdmissionReview{}, len(reviewFields) - 1}, // kind and apiVersion are one in Go
		{admissionv1.AdmissionRequest{}, len(requestFields)},
		{metav1.GroupVersionKind{}, len(kindFields)},
		{metav1.GroupVersionResource{}, len(resourceFields)},
		{authenticationv1.UserInfo{}, len(userFields)},
	} {
		if n := reflect.TypeOf(test.of).NumField(); n != test.known {
			t.Errorf("%T has %d fields, scan knows %d", test.of, n, test.known)
		}
	}
}

// An object that a handler grows must not grow into what lies behind it.
func TestObjectsDoNotReachIntoEachOther(t *testing.T) {
	var e envelope
	if err := e.read(wholeReview(t)); err != nil {
		t.Fatal(err)
	}
	old := string(e.OldObject.Raw)
	grown := append(e.Object.Raw, "xxxxxxxxxxxxxxxxxxxx"...)
	if string(e.OldObject.Raw) != old {
		t.Errorf("the object has grown to %s, the old object is %s", grown, e.OldObject.Raw)
	}
}

// FuzzEnvelope reads anything in both ways.
func FuzzEnvelope(f *testing.F) {
	for body := range reviews(f) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { compareReads(t, body) })
}
