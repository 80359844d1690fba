// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// treeSerializer has a REST client read and write unstructured objects as JSON. What belongs to the protocol, as a Status or
// the frame of a watch event, keeps the type that meta has for it. It is what client-go's package dynamic gives a client,
// without CBOR.
type treeSerializer struct{ meta *runtime.Scheme }

// SupportedMediaTypes has JSON alone.
func (s treeSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
		Serializer: json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{}),
		StreamSerializer: &runtime.StreamSerializerInfo{
			EncodesAsText: true, Framer: json.Framer,
			Serializer: json.NewSerializerWithOptions(json.DefaultMetaFactory, s.meta, s.meta, json.SerializerOptions{}),
		},
	}}
}

// EncoderForVersion writes objects with the kind they have.
func (s treeSerializer) EncoderForVersion(encoder runtime.Encoder, version runtime.GroupVersioner) runtime.Encoder {
	return runtime.WithVersionEncoder{Version: version, Encoder: encoder, ObjectTyper: s}
}

// DecoderToVersion decodes what comes as it is.
func (treeSerializer) DecoderToVersion(decoder runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return decoder
}

// New makes the object that a document of a kind is decoded into.
func (s treeSerializer) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if obj, err := s.meta.New(kind); err == nil {
		return obj, nil
	}
	tree := &unstructured.Unstructured{}
	tree.SetGroupVersionKind(kind)
	return tree, nil
}

// ObjectKinds gives an unstructured object's own kind, also if that is empty.
func (s treeSerializer) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	kinds, unversioned, err := s.meta.ObjectKinds(obj)
	if _, tree := obj.(runtime.Unstructured); err != nil && tree {
		return []schema.GroupVersionKind{obj.GetObjectKind().GroupVersionKind()}, false, nil
	}
	return kinds, unversioned, err
}

// Recognizes every kind.
func (treeSerializer) Recognizes(schema.GroupVersionKind) bool { return true }
