// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// server stands for an API server that has pods and nodes.
type server struct{}

func (server) RoundTrip(r *http.Request) (*http.Response, error) {
	fmt.Println(r.Method, r.URL.Path)
	contentType, body := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", `{"items":[]}`
	switch r.URL.Path {
	case "/api":
		body = `{"items":[{"metadata":{"name":""},"versions":[{"version":"v1","resources":[
			{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced"},{"resource":"nodes","responseKind":{"kind":"Node"},"scope":"Cluster"}]}]}]}`
	case "/api/v1/nodes/n1":
		contentType, body = "application/json", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"}}`
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

var (
	config     = &rest.Config{Host: "https://api.example.com"}
	httpClient = &http.Client{Transport: server{}}
	podKind    = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleNewDynamicRESTMapper() {
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	must(err)
	fmt.Println("nothing asked yet")
	mapping, err := mapper.RESTMapping(podKind.GroupKind(), "v1")
	must(err)
	fmt.Println(mapping.Resource.Resource, mapping.Scope.Name())
	// Unordered output:
	// nothing asked yet
	// GET /api
	// GET /apis
	// pods namespace
}

func ExampleGVKForObject() {
	kind, err := apiutil.GVKForObject(&corev1.Pod{}, apiutil.DefaultScheme())
	fmt.Println(kind, err)
	_, err = apiutil.GVKForObject(&corev1.Pod{}, runtime.NewScheme())
	fmt.Println(runtime.IsNotRegisteredError(err))
	_, err = apiutil.GVKForObject(&unstructured.Unstructured{}, nil)
	fmt.Println(runtime.IsMissingKind(err))
	// Output:
	// /v1, Kind=Pod <nil>
	// true
	// true
}

func ExampleTypeTellsKind() {
	fmt.Println(apiutil.TypeTellsKind(&corev1.Pod{}, nil), apiutil.TypeTellsKind(&unstructured.Unstructured{}, nil))
	// Output: true false
}

func ExampleIsObjectNamespaced() {
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	must(err)
	namespaced, err := apiutil.IsObjectNamespaced(&corev1.Node{}, apiutil.DefaultScheme(), mapper)
	fmt.Println(namespaced, err)
	// Unordered output:
	// GET /api
	// GET /apis
	// false <nil>
}

func ExampleIsGVKNamespaced() {
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	must(err)
	namespaced, err := apiutil.IsGVKNamespaced(podKind, mapper)
	fmt.Println(namespaced, err)
	// Unordered output:
	// GET /api
	// GET /apis
	// true <nil>
}

func ExampleRESTClientForGVK() {
	nodeKind := schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	scheme := apiutil.SchemeFor(&corev1.Node{}, nodeKind, nil)
	client, err := apiutil.RESTClientForGVK(nodeKind, false, false, config, serializer.NewCodecFactory(scheme), httpClient)
	must(err)
	node := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "gone afterwards"}}
	must(client.Get().Resource("nodes").Name("n1").Do(context.Background()).Into(node))
	fmt.Printf("%s %q\n", node.Name, node.Spec.PodCIDR)
	// Output:
	// GET /api/v1/nodes/n1
	// n1 ""
}

func ExampleAddToProtobufScheme() {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gauge"}
	fmt.Println(apiutil.SpeaksProtobuf(podKind), apiutil.SpeaksProtobuf(kind))
	must(apiutil.AddToProtobufScheme(func(s *runtime.Scheme) error {
		s.AddKnownTypeWithName(kind, &corev1.Pod{}) // a type with generated protobuf code
		return nil
	}))
	fmt.Println(apiutil.SpeaksProtobuf(kind))
	// Output:
	// true false
	// true
}

func ExampleSpeaksProtobuf() {
	fmt.Println(apiutil.SpeaksProtobuf(podKind))
	// Output: true
}

func ExampleFormOf() {
	fmt.Println(apiutil.FormOf(&corev1.Pod{}), apiutil.FormOf(&unstructured.UnstructuredList{}), apiutil.FormOf(&metav1.PartialObjectMetadata{}))
	// Output: typed unstructured metadata
}

func ExampleIsNil() {
	fmt.Println(apiutil.IsNil((*corev1.Pod)(nil)), apiutil.IsNil(&corev1.Pod{}))
	// Output: true false
}

func ExampleZero() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	apiutil.Zero(pod)
	fmt.Printf("%q\n", pod.Name)
	// Output: ""
}

func ExampleItemKind() {
	fmt.Println(apiutil.ItemKind(apiutil.ListKind(podKind)))
	// Output: /v1, Kind=Pod
}

func ExampleListKind() {
	fmt.Println(apiutil.ListKind(podKind))
	// Output: /v1, Kind=PodList
}

func ExampleDefaultScheme() {
	fmt.Println(apiutil.DefaultScheme() == apiutil.DefaultScheme(), apiutil.DefaultScheme().Recognizes(podKind))
	// Output: true false
}

func ExampleSetDefaultScheme() {
	own := runtime.NewScheme()
	must(corev1.AddToScheme(own))
	apiutil.SetDefaultScheme(own)
	defer apiutil.SetDefaultScheme(nil)
	fmt.Println(apiutil.DefaultScheme().Recognizes(podKind))
	// Output: true
}

func ExampleSchemeFor() {
	scheme := apiutil.SchemeFor(&corev1.Pod{}, podKind, apiutil.DefaultScheme())
	fmt.Println(scheme.Recognizes(podKind), scheme == apiutil.DefaultScheme())
	// Output: true false
}

func ExampleDecodeUnstructured() {
	pod := &unstructured.Unstructured{}
	must(apiutil.DecodeUnstructured([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","generation":9007199254740993}}`), pod))
	fmt.Println(pod.GetName(), pod.GetGeneration())
	// Output: web 9007199254740993
}
