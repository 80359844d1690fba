// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"bytes"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Documents are read and objects written as client-go's dynamic client does it.
func TestTreeSerializer(t *testing.T) {
	ours, theirs := treeSerializer{metaScheme()}, dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	our, their := ours.SupportedMediaTypes()[0], theirs.SupportedMediaTypes()[0]
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	asked := schema.GroupVersionKind{Version: "v1", Kind: "Status"}
	for name, document := range map[string]string{
		"object":          `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"n":9007199254740993}}`,
		"list":            `{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}}]}`,
		"status":          `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Gone","code":410}`,
		"event":           `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod"}}`,
		"no kind":         `{"metadata":{"name":"a"}}`,
		"no object":       `[]`,
		"broken":          `{`,
		"kind of meta/v1": `{"apiVersion":"v1","kind":"APIVersions","versions":["v1"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, into := range []func() runtime.Object{
				func() runtime.Object { return nil },
				func() runtime.Object { return &unstructured.Unstructured{} },
				func() runtime.Object { return &unstructured.UnstructuredList{} },
				func() runtime.Object { return &metav1.WatchEvent{} },
			} {
				for _, pair := range [][2]runtime.Serializer{{our.Serializer, their.Serializer}, {our.StreamSerializer.Serializer, their.StreamSerializer.Serializer}} {
					a, aKind, aErr := ours.DecoderToVersion(pair[0], version).Decode([]byte(document), &asked, into())
					b, bKind, bErr := theirs.DecoderToVersion(pair[1], version).Decode([]byte(document), &asked, into())
					if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(aKind, bKind) || (aErr == nil) != (bErr == nil) {
						t.Errorf("into %T: got %#v, %v, %v, want %#v, %v, %v", into(), a, aKind, aErr, b, bKind, bErr)
					}
				}
			}
		})
	}
	tree := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	for _, obj := range []runtime.Object{tree, &unstructured.Unstructured{Object: map[string]any{}}, &metav1.DeleteOptions{}, &metav1.Status{}} {
		var a, b bytes.Buffer
		aErr := ours.EncoderForVersion(our.Serializer, version).Encode(obj.DeepCopyObject(), &a)
		bErr := theirs.EncoderForVersion(their.Serializer, version).Encode(obj.DeepCopyObject(), &b)
		if a.String() != b.String() || (aErr == nil) != (bErr == nil) {
			t.Errorf("%T: got %s, %v, want %s, %v", obj, &a, aErr, &b, bErr)
		}
	}
}
