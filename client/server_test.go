// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// A server is an API server for tests: an http.Handler without a port, that answers from a table and remembers what it was
// asked.
type server struct {
	t       testing.TB
	answers map[string]func(*http.Request, []byte) *reply // "GET /api/v1/namespaces/a/pods/p"

	mu       sync.Mutex
	requests []request
}

type request struct {
	method, path, query string
	header              http.Header
	body                []byte
}

type reply struct {
	code   int
	header http.Header
	body   []byte
	stream io.ReadCloser // instead of body
}

// newServer makes a server that has pods, deployments, widgets and nodes and no objects.
func newServer(t testing.TB) *server {
	s := &server{t: t, answers: map[string]func(*http.Request, []byte) *reply{}}
	s.on("GET /api", discoveryReply(`{"items":[{"metadata":{"name":""},"versions":[{"version":"v1","freshness":"Current","resources":[
		{"resource":"pods","responseKind":{"group":"","version":"v1","kind":"Pod"},"scope":"Namespaced","singularResource":"pod"},
		{"resource":"configmaps","responseKind":{"group":"","version":"v1","kind":"ConfigMap"},"scope":"Namespaced","singularResource":"configmap"},
		{"resource":"namespaces","responseKind":{"group":"","version":"v1","kind":"Namespace"},"scope":"Cluster","singularResource":"namespace"},
		{"resource":"nodes","responseKind":{"group":"","version":"v1","kind":"Node"},"scope":"Cluster","singularResource":"node"}]}]}]}`))
	s.on("GET /apis", discoveryReply(`{"items":[
		{"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment"}]}]},
		{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":"Current","resources":[
			{"resource":"widgets","responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"scope":"Namespaced","singularResource":"widget"}]}]}]}`))
	return s
}

func discoveryReply(body string) *reply {
	return &reply{
		code:   http.StatusOK,
		header: http.Header{"Content-Type": {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}},
		body:   []byte(body),
	}
}

// on answers one request always in the same way.
func (s *server) on(request string, r *reply) {
	s.answers[request] = func(*http.Request, []byte) *reply { return r }
}

// object makes an answer of an object.
func object(code int, obj any) *reply {
	body, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	return &reply{code: code, header: http.Header{"Content-Type": {"application/json"}}, body: body}
}

// protobuf makes an answer of an object in protobuf.
func protobuf(code int, obj runtime.Object) *reply {
	body, err := encodeProtobuf(obj, obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		panic(err)
	}
	return &reply{code: code, header: http.Header{"Content-Type": {protobufType}}, body: body}
}

// failure makes an answer of a Status.
func failure(code int, reason metav1.StatusReason, message string) *reply {
	return object(code, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

// missing answers a request for an object that is not in the table.
func missing(r *http.Request) *reply {
	return object(http.StatusNotFound, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("%s %s is not in the table", r.Method, r.URL.Path),
		Details: &metav1.StatusDetails{Name: path.Base(r.URL.Path)},
	})
}

// RoundTrip lets the server be an http.RoundTripper.
func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	s.mu.Lock()
	s.requests = append(s.requests, request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Clone(), body})
	find := s.answers[r.Method+" "+r.URL.Path]
	s.mu.Unlock()
	a := missing(r)
	if find != nil {
		a = find(r, body)
	}
	stream := a.stream
	if stream == nil {
		stream = io.NopCloser(bytes.NewReader(a.body))
	}
	return &http.Response{
		StatusCode: a.code, Status: http.StatusText(a.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: maps.Clone(a.header), Body: stream, ContentLength: -1, Request: r,
	}, nil
}

// asked returns the requests since the last call, without those of discovery.
func (s *server) asked() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.requests
	s.requests = nil
	return slices.DeleteFunc(all, func(r request) bool { return r.path == "/api" || r.path == "/apis" })
}

// last returns the only request since the last call.
func (s *server) last() request {
	s.t.Helper()
	all := s.asked()
	if len(all) != 1 {
		s.t.Fatalf("%d requests, want one: %v", len(all), all)
	}
	return all[0]
}

func (s *server) config() *rest.Config {
	return &rest.Config{Host: "https://server.test", Transport: s}
}

func (s *server) client(options Options) WithWatch {
	s.t.Helper()
	c, err := NewWithWatch(s.config(), options)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}
