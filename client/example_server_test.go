// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// exampleServer stands for an API server in examples: it prints each request and answers from a table, or with what it was
// sent.
type exampleServer struct {
	objects map[string]string // by path
	quiet   bool
}

const (
	examplePod = `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default","name":"web","resourceVersion":"7","uid":"u1","finalizers":["other/f"]},"spec":{"nodeName":"n1"}}`
	coreGroup  = `{"items":[{"metadata":{"name":""},"versions":[{"version":"v1","resources":[
		{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","singularResource":"pod"},
		{"resource":"nodes","responseKind":{"kind":"Node"},"scope":"Cluster","singularResource":"node"}]}]}]}`
	appsGroup = `{"items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[
		{"resource":"deployments","responseKind":{"kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment"}]}]}]}`
)

// newExampleServer has one pod.
func newExampleServer() *exampleServer {
	return &exampleServer{objects: map[string]string{
		"/api/v1/namespaces/default/pods/web":                    examplePod,
		"/api/v1/namespaces/default/pods":                        `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"9"},"items":[` + examplePod + `]}`,
		"/apis/apps/v1/namespaces/default/deployments/web/scale": `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"default"},"spec":{"replicas":3}}`,
	}}
}

// config is how a client reaches the server. It asks for JSON, so that what is sent can be read.
func (s *exampleServer) config() *rest.Config {
	return &rest.Config{Host: "https://api.example.com", Transport: s, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// RoundTrip answers a request.
func (s *exampleServer) RoundTrip(r *http.Request) (*http.Response, error) {
	contentType, body := "application/json", ""
	switch r.URL.Path {
	case "/api", "/apis":
		contentType, body = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", coreGroup
		if r.URL.Path == "/apis" {
			body = appsGroup
		}
		return respond(r, http.StatusOK, contentType, body), nil
	}
	sent := []byte{}
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
	}
	if !s.quiet {
		fmt.Println(strings.TrimSpace(strings.Join([]string{r.Method, r.URL.RequestURI(), string(bytes.TrimSpace(sent))}, " ")))
	}
	stored, found := s.objects[strings.TrimSuffix(r.URL.Path, "/status")]
	switch {
	case r.URL.Query().Get("watch") != "":
		body = `{"type":"ADDED","object":` + examplePod + `}`
	case r.Method == http.MethodPost, r.Method == http.MethodPut:
		body = string(sent)
	case found:
		body = stored
	default:
		name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		return respond(r, http.StatusNotFound, contentType, fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Status","status":"Failure","code":404,"reason":"NotFound","message":"pods %q not found","details":{"name":%q}}`, name, name)), nil
	}
	return respond(r, http.StatusOK, contentType, body), nil
}

func respond(r *http.Request, code int, contentType, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}
