// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Form tells how an object or a list of objects is held in memory. It decides the codec of a request and the store of a
// cached read, and nothing else: every verb takes the same path in all three.
type Form uint8

const (
	// Typed is a Go struct whose type says which kind it is.
	Typed Form = iota
	// Unstructured is a tree of maps that carries its own kind: anything that implements runtime.Unstructured.
	Unstructured
	// Metadata is metav1.PartialObjectMetadata or its list: it carries its own kind and nothing but object metadata.
	Metadata

	// Forms is the number of forms; tables with a row per form are arrays of this length.
	Forms = iota
)

// String returns the form's name in lower case.
func (f Form) String() string {
	return [Forms]string{"typed", "unstructured", "metadata"}[f]
}

// FormOf tells the form of an object or list. It is the only place that asks. Whatever is neither unstructured nor
// metadata, nil included, is Typed.
func FormOf(obj any) Form {
	switch obj.(type) {
	case runtime.Unstructured:
		return Unstructured
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return Metadata
	default:
		return Typed
	}
}

// IsNil reports whether obj is nil or holds a nil pointer, map or other nil value: both would panic when used.
func IsNil(obj any) bool {
	if obj == nil {
		return true
	}
	switch v := reflect.ValueOf(obj); v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface, reflect.Func, reflect.Chan:
		return v.IsNil()
	default:
		return false
	}
}
