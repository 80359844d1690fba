// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/wherry-dev/wherry/client/log"
	managermetrics "github.com/wherry-dev/wherry/manager/metrics"
	"github.com/wherry-dev/wherry/webhook/admission"
)

const v1Review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1","operation":"CREATE"}}`

func allow(context.Context, admission.Request) admission.Response { return admission.Allowed("") }

type slowBody struct{ err error }

func (b slowBody) Read([]byte) (int, error) { return 0, b.err }

func TestRefusedRequests(t *testing.T) {
	hook := &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		t.Error("the handler was asked")
		return admission.Allowed("")
	})}
	large := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","x":"` + strings.Repeat("x", 8<<20) + `"}`
	tests := map[string]struct {
		body    string
		headers []string
		code    int
		want    string
	}{
		"no JSON":           {body: "{", code: 400, want: "decode"},
		"empty":             {body: "", code: 400, want: "body is empty"},
		"list":              {body: "[]", code: 400, want: "decode"},
		"no request":        {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, code: 400, want: "no request"},
		"null request":      {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`, code: 400, want: "no request"},
		"other kind":        {body: `{"apiVersion":"v1","kind":"Pod"}`, code: 400, want: `kind "Pod"`},
		"unknown version":   {body: `{"apiVersion":"admission.k8s.io/v2","kind":"AdmissionReview","request":{"uid":"u"}}`, code: 400, want: "admission.k8s.io/v2"},
		"other group":       {body: `{"apiVersion":"v1","kind":"AdmissionReview","request":{"uid":"u"}}`, code: 400, want: "AdmissionReview of admission.k8s.io"},
		"wrong type inside": {body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":7}}`, code: 400, want: "decode"},
		"8 MiB":             {body: large, code: 413, want: "larger than 7340032 bytes"},
		"no content type":   {body: v1Review, headers: []string{"Content-Type", ""}, code: 415, want: "expected application/json"},
		"protobuf":          {body: v1Review, headers: []string{"Content-Type", "application/vnd.kubernetes.protobuf"}, code: 415, want: "contentType="},
		"zipped":            {body: v1Review, headers: []string{"Content-Encoding", "gzip"}, code: 415, want: "contentEncoding=gzip"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rec := post(hook, []byte(test.body), test.headers...)
			if rec.Code != test.code {
				t.Errorf("status %d, want %d", rec.Code, test.code)
			}
			answer := answerIn(t, rec)
			if answer.Allowed || answer.Result.Code != int32(test.code) || !strings.Contains(answer.Result.Message, test.want) {
				t.Errorf("got %d %q, want %q", answer.Result.Code, answer.Result.Message, test.want)
			}
		})
	}
}

func TestBodyThatDoesNotCome(t *testing.T) {
	for err, code := range map[error]int{timeout{}: 408, io.ErrUnexpectedEOF: 400} {
		req := httptest.NewRequest(http.MethodPost, "/x", slowBody{err})
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
		rec := httptest.NewRecorder()
		(&admission.Webhook{Handler: admission.HandlerFunc(allow)}).ServeHTTP(rec, req)
		if rec.Code != code {
			t.Errorf("%v: got %d, want %d", err, rec.Code, code)
		}
	}
}

// The type of a body is looked at before the body, so that nobody makes us read what we would not take.
func TestContentTypeBeforeBody(t *testing.T) {
	req := httptest.NewRequest(http.MethodPost, "/x", untouchable{t})
	req.Header.Set("Content-Type", "text/plain")
	rec := httptest.NewRecorder()
	(&admission.Webhook{Handler: admission.HandlerFunc(allow)}).ServeHTTP(rec, req)
	if rec.Code != http.StatusUnsupportedMediaType {
		t.Errorf("got %d", rec.Code)
	}
}

type untouchable struct{ t *testing.T }

func (u untouchable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestAnswersInTheVersionOfTheQuestion(t *testing.T) {
	hook := &admission.Webhook{Handler: admission.HandlerFunc(allow)}
	for question, want := range map[string]string{
		v1Review: "admission.k8s.io/v1",
		strings.Replace(v1Review, "/v1", "/v1beta1", 1): "admission.k8s.io/v1beta1",
		`{"request":{"uid":"u1"}}`:                      "admission.k8s.io/v1",
	} {
		rec := post(hook, []byte(question))
		if !strings.Contains(rec.Body.String(), `"apiVersion":"`+want+`"`) || rec.Header().Get("Content-Type") != "application/json" {
			t.Errorf("to %s: %s %v", question, rec.Body, rec.Header())
		}
		if answer := answerIn(t, rec); !answer.Allowed || answer.UID != "u1" || answer.Result.Code != 200 || answer.PatchType != nil {
			t.Errorf("to %s: %+v", question, answer)
		}
	}
}

func TestPanics(t *testing.T) {
	var lines []string
	log.SetLogger(logr.Discard())
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	before := counted(t, "controller_runtime_webhook_panics_total")
	hook := &admission.Webhook{
		Handler:        admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { panic("secret") }),
		LogConstructor: func(logr.Logger, *admission.Request) logr.Logger { return logger },
	}
	rec := post(hook, []byte(v1Review))
	answer := answerIn(t, rec)
	if rec.Code != 200 || answer.Allowed || answer.UID != "u1" || answer.Result.Code != 500 {
		t.Errorf("got %d %+v", rec.Code, answer)
	}
	if strings.Contains(rec.Body.String(), "secret") {
		t.Errorf("the caller must not see the panic: %s", rec.Body)
	}
	if all := strings.Join(lines, "\n"); !strings.Contains(all, "panic: secret") || !strings.Contains(all, "webhook_test.go") {
		t.Errorf("the log must have panic and stack: %s", all)
	}
	if got := counted(t, "controller_runtime_webhook_panics_total") - before; got != 1 {
		t.Errorf("counted %v panics", got)
	}

	defer func() {
		if recover() != "secret" {
			t.Error("without recovery the panic goes on")
		}
	}()
	post(hook.WithRecoverPanic(false), []byte(v1Review))
}

// counted is the sum of a counter's series.
func counted(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := managermetrics.Registry.(prometheus.Gatherer).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
			return sum
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

type contextKey struct{}

func TestContextAndLogger(t *testing.T) {
	var line string
	base := funcr.New(func(prefix, args string) { line = prefix + " " + args }, funcr.Options{})
	hook := &admission.Webhook{
		WithContextFunc: func(ctx context.Context, r *http.Request) context.Context {
			return context.WithValue(ctx, contextKey{}, r.Header.Get("X-Test"))
		},
		Handler: admission.HandlerFunc(func(ctx context.Context, _ admission.Request) admission.Response {
			log.FromContext(ctx).Info("here")
			return admission.Allowed(fmt.Sprint(ctx.Value(contextKey{})))
		}),
	}
	h, err := admission.StandaloneWebhook(hook, admission.StandaloneOptions{Logger: base})
	if err != nil {
		t.Fatal(err)
	}
	rec := post(h, []byte(`{"request":{"uid":"u7","namespace":"ns","name":"n","resource":{"group":"g","version":"v","resource":"r"},"userInfo":{"username":"me"}}}`), "X-Test", "given")
	if answer := answerIn(t, rec); answer.Result.Message != "given" {
		t.Errorf("got %+v", answer.Result)
	}
	for _, want := range []string{`"namespace"="ns"`, `"name"="n"`, `"user"="me"`, `"requestID"="u7"`, `"object"=`, `"resource"=`} {
		if !strings.Contains(line, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
}

func TestStandaloneIsMetered(t *testing.T) {
	h, err := admission.StandaloneWebhook(&admission.Webhook{Handler: admission.HandlerFunc(allow)}, admission.StandaloneOptions{MetricsPath: "/metered"})
	if err != nil {
		t.Fatal(err)
	}
	before := counted(t, "controller_runtime_webhook_requests_total")
	post(h, []byte(v1Review))
	post(h, []byte("{"))
	if got := counted(t, "controller_runtime_webhook_requests_total") - before; got != 2 {
		t.Errorf("counted %v requests", got)
	}
}

func TestUnencodableResponses(t *testing.T) {
	hook := &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Patched("", jsonpatch.NewOperation("add", "/x", func() {}))
	})}
	answer := answerIn(t, post(hook, []byte(v1Review)))
	if answer.Allowed || answer.UID != "u1" || answer.Result.Code != 500 {
		t.Errorf("got %+v", answer)
	}
}

func TestResponses(t *testing.T) {
	user := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "u", UserInfo: authenticationv1.UserInfo{Username: "x"}}}
	tests := map[string]struct {
		response admission.Response
		want     string
	}{
		"allowed":  {admission.Allowed("fine"), `{"uid":"u","allowed":true,"status":{"metadata":{},"message":"fine","code":200}}`},
		"denied":   {admission.Denied("no"), `{"uid":"u","allowed":false,"status":{"metadata":{},"message":"no","reason":"Forbidden","code":403}}`},
		"errored":  {admission.Errored(418, errors.New("e")), `{"uid":"u","allowed":false,"status":{"metadata":{},"message":"e","code":418}}`},
		"nil":      {admission.Errored(500, nil), `{"uid":"u","allowed":false,"status":{"metadata":{},"code":500}}`},
		"zero":     {admission.Response{}, `{"uid":"u","allowed":false,"status":{"metadata":{},"code":200}}`},
		"patched":  {admission.Patched("p", jsonpatch.NewOperation("add", "/a", nil)), `{"uid":"u","allowed":true,"status":{"metadata":{},"message":"p","code":200},"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6bnVsbH1d","patchType":"JSONPatch"}`},
		"warnings": {admission.Allowed("").WithWarnings("a").WithWarnings("b", "c"), `{"uid":"u","allowed":true,"status":{"metadata":{},"code":200},"warnings":["a","b","c"]}`},
		"no diff":  {admission.PatchResponseFromRaw([]byte("{"), []byte("{}")), `"code":500`},
		"from raw": {admission.PatchResponseFromRaw([]byte(`{"a":1}`), []byte(`{"a":1}`)), `"allowed":true`},
	}
	for name, test := range tests {
		if err := test.response.Complete(user); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(test.response.AdmissionResponse)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(got, []byte(test.want)) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
}

func TestRequestFromContext(t *testing.T) {
	if _, err := admission.RequestFromContext(t.Context()); err == nil {
		t.Error("there is no request in there")
	}
	ctx := admission.NewContextWithRequest(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "u"}})
	if req, err := admission.RequestFromContext(ctx); err != nil || req.UID != "u" {
		t.Errorf("got %v, %v", req, err)
	}
}
