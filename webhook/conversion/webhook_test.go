// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherry-dev/wherry/manager/metrics"
	"github.com/wherry-dev/wherry/webhook/conversion"
)

// reviewed is what an API server reads of an answer.
type reviewed struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Request    any    `json:"request"`
	Response   *struct {
		UID              string            `json:"uid"`
		ConvertedObjects []json.RawMessage `json:"convertedObjects"`
		Result           metav1.Status     `json:"result"`
	} `json:"response"`
}

func post(h http.Handler, body string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec
}

func review(version, desired string, objects ...string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/%s","kind":"ConversionReview","request":{"uid":"u1","desiredAPIVersion":%q,"objects":[%s]}}`,
		version, desired, strings.Join(objects, ","))
}

func convert(t *testing.T, h http.Handler, body string) reviewed {
	t.Helper()
	rec := post(h, body)
	if rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("got %d %s", rec.Code, rec.Body)
	}
	var r reviewed
	if err := json.Unmarshal(rec.Body.Bytes(), &r); err != nil || r.Response == nil || r.Response.UID != "u1" || r.Kind != "ConversionReview" || r.Request != nil {
		t.Fatalf("%v in %s", err, rec.Body)
	}
	return r
}

func one(version, field string, n int64) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Gadget","metadata":{"name":"g-%s","namespace":"ns"},%q:%d}`, version, version, field, n)
}

func TestAllVersionsInOneRequest(t *testing.T) {
	all := []string{one("v1", "seconds", 3), one("v2", "millis", 4000), one("v3", "micros", 5000000)}
	fields := map[string][]string{"v1": {"seconds", "3", "4", "5"}, "v2": {"millis", "3000", "4000", "5000"}, "v3": {"micros", "3000000", "4000000", "5000000"}}
	for _, reviewVersion := range []string{"v1", "v1beta1"} {
		for version, want := range fields {
			r := convert(t, conversion.NewWebhookHandler(gadgets(), nil), review(reviewVersion, "example.com/"+version, all...))
			if r.APIVersion != "apiextensions.k8s.io/"+reviewVersion || r.Response.Result.Status != "Success" || len(r.Response.ConvertedObjects) != 3 {
				t.Fatalf("to %s: %+v", version, r)
			}
			for i, converted := range r.Response.ConvertedObjects {
				var got struct {
					metav1.PartialObjectMetadata
				}
				if err := json.Unmarshal(converted, &got); err != nil {
					t.Fatal(err)
				}
				if got.APIVersion != "example.com/"+version || got.Kind != "Gadget" || got.Name != fmt.Sprint("g-v", i+1) || got.Namespace != "ns" {
					t.Errorf("to %s: object %d is %s", version, i, converted)
				}
				if number := fmt.Sprintf("%q:%s", want[0], want[i+1]); !bytes.Contains(converted, []byte(number)) {
					t.Errorf("to %s: object %d is %s, want %s", version, i, converted, number)
				}
			}
		}
	}
}

// An object that has the version already is not touched: not even fields that its Go type does not know.
func TestSameVersionIsReturnedAsItIs(t *testing.T) {
	object := `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"g"},"seconds":1,"extra":1.0}`
	r := convert(t, conversion.NewWebhookHandler(gadgets(), nil), review("v1", "example.com/v1", object))
	if got := string(r.Response.ConvertedObjects[0]); got != object {
		t.Errorf("got %s", got)
	}
}

func TestFailuresAreNamed(t *testing.T) {
	h := conversion.NewWebhookHandler(gadgets(), conversion.NewRegistry())
	tests := map[string]struct {
		desired string
		objects []string
		want    []string
	}{
		"one of three":     {"example.com/v2", []string{one("v1", "seconds", 1), one("v1", "seconds", -1), one("v3", "micros", 1)}, []string{"object 2 of 3", `Gadget "ns/g-v1"`, "from v1 to v2", "negative time"}},
		"two of three":     {"example.com/v3", []string{one("v1", "seconds", -1), one("v2", "millis", 1), one("v1", "seconds", -1)}, []string{"object 1 of 3", "object 3 of 3", "to the hub"}},
		"unknown version":  {"example.com/v9", []string{one("v1", "seconds", 1)}, []string{"object 1 of 1", "v9"}},
		"unknown kind":     {"example.com/v2", []string{`{"apiVersion":"example.com/v1","kind":"Other","metadata":{"name":"o"}}`}, []string{`Other "o"`}},
		"other group":      {"other.com/v2", []string{one("v1", "seconds", 1)}, []string{"another group"}},
		"no group":         {"", []string{one("v1", "seconds", 1)}, []string{"desiredAPIVersion", "empty"}},
		"no version":       {"a/b/c", []string{one("v1", "seconds", 1)}, []string{"desiredAPIVersion", "a/b/c"}},
		"no object":        {"example.com/v2", []string{"7"}, []string{"object 1 of 1", "no object"}},
		"null":             {"example.com/v2", []string{"null"}, []string{"object 1 of 1"}},
		"no kind":          {"example.com/v2", []string{`{"apiVersion":"example.com/v1"}`}, []string{"Kind"}},
		"no apiVersion":    {"example.com/v2", []string{`{"kind":"Gadget"}`}, []string{"apiVersion"}},
		"malformed inside": {"example.com/v2", []string{`{"apiVersion":"example.com/v1","kind":"Gadget","seconds":"x"}`}, []string{"decode a example.com/v1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := convert(t, h, review("v1", test.desired, test.objects...))
			if r.Response.Result.Status != "Failure" || r.Response.Result.Code < 400 || r.Response.ConvertedObjects == nil || len(r.Response.ConvertedObjects) > 0 {
				t.Errorf("got %+v", r.Response)
			}
			for _, want := range test.want {
				if !strings.Contains(r.Response.Result.Message, want) {
					t.Errorf("no %q in %q", want, r.Response.Result.Message)
				}
			}
		})
	}
}

func TestManyFailuresAreCut(t *testing.T) {
	objects := make([]string, 5000)
	for i := range objects {
		objects[i] = one("v1", "seconds", -1)
	}
	r := convert(t, conversion.NewWebhookHandler(gadgets(), nil), review("v1", "example.com/v2", objects...))
	if m := r.Response.Result.Message; !strings.Contains(m, "and 4990 more") || len(m) > 4<<10 {
		t.Errorf("%d bytes: %.200s", len(m), m)
	}
}

func TestPanicOfAConverter(t *testing.T) {
	before := panics(t)
	r := convert(t, conversion.NewWebhookHandler(gadgets(), nil), review("v1", "example.com/v2", one("v2", "millis", 1), one("v1", "seconds", -2)))
	m := r.Response.Result.Message
	if !strings.Contains(m, "object 2 of 2") || strings.Contains(m, "secret") {
		t.Errorf("got %q", m)
	}
	if got := panics(t) - before; got != 1 {
		t.Errorf("counted %v panics", got)
	}
}

func panics(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "controller_runtime_conversion_webhook_panics_total" {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("the metric is missing")
	return 0
}

func TestRefusedRequests(t *testing.T) {
	h := conversion.NewWebhookHandler(gadgets(), nil)
	good := review("v1", "example.com/v2", one("v1", "seconds", 1))
	tests := map[string]struct {
		body    string
		headers []string
		code    int
	}{
		"empty":           {"", nil, 400},
		"no JSON":         {"{", nil, 400},
		"no request":      {`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}`, nil, 400},
		"unknown version": {strings.Replace(good, "io/v1", "io/v2", 1), nil, 400},
		"other kind":      {strings.Replace(good, "ConversionReview", "AdmissionReview", 1), nil, 400},
		"8 MiB":           {review("v1", "example.com/v2", `{"x":"`+strings.Repeat("x", 8<<20)+`"}`), nil, 413},
		"content type":    {good, []string{"Content-Type", "application/yaml"}, 415},
		"encoded":         {good, []string{"Content-Encoding", "gzip"}, 415},
		"good":            {good, nil, 200},
	}
	for name, test := range tests {
		if rec := post(h, test.body, test.headers...); rec.Code != test.code {
			t.Errorf("%s: got %d %.200s", name, rec.Code, rec.Body)
		}
	}
}

// A converter of the registry comes before the Go types, and may be registered after the handler was made.
func TestRegisteredConverter(t *testing.T) {
	registry := conversion.NewRegistry()
	h := conversion.NewWebhookHandler(gadgets(), registry)
	failing := converterFunc(func(context.Context, runtime.Object, runtime.Object) error { return errors.New("by the registry") })
	if err := registry.RegisterConverter(gadgetKind, failing); err != nil {
		t.Fatal(err)
	}
	r := convert(t, h, review("v1", "example.com/v2", one("v1", "seconds", 1)))
	if !strings.Contains(r.Response.Result.Message, "by the registry") {
		t.Errorf("got %+v", r.Response.Result)
	}
	if err := registry.RegisterConverter(gadgetKind, failing); err == nil {
		t.Error("a kind has one converter")
	}
	if err := registry.RegisterConverter(gadgetKind, nil); err == nil {
		t.Error("nil is no converter")
	}
	if _, ok := registry.GetConverter(gadgetKind); !ok {
		t.Error("the converter is gone")
	}
}

type converterFunc func(context.Context, runtime.Object, runtime.Object) error

func (f converterFunc) ConvertObject(ctx context.Context, src, dst runtime.Object) error {
	return f(ctx, src, dst)
}

// FuzzConversion posts anything: the answer is a review, or a refusal.
func FuzzConversion(f *testing.F) {
	f.Add([]byte(review("v1", "example.com/v2", one("v1", "seconds", 1), one("v3", "micros", 1))))
	f.Add([]byte(review("v1beta1", "example.com/v1", one("v3", "micros", 1), "null", "{}", "[]")))
	f.Add([]byte(`{"request":{"desiredAPIVersion":"example.com/v2","objects":null}}`))
	f.Add([]byte(``))
	h := conversion.NewWebhookHandler(gadgets(), nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		rec := post(h, string(body))
		if rec.Code == 400 {
			return
		}
		var r reviewed
		if err := json.Unmarshal(rec.Body.Bytes(), &r); rec.Code != 200 || err != nil || r.Response == nil {
			t.Fatalf("got %d %s: %v", rec.Code, rec.Body, err)
		}
		if (r.Response.Result.Status == "Success") == (r.Response.Result.Message != "") {
			t.Fatalf("result %+v", r.Response.Result)
		}
	})
}
