// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Object is any API object that can be read and written: a pointer to a Go type of an API, an *unstructured.Unstructured
// or a *metav1.PartialObjectMetadata.
type Object interface {
	metav1.Object
	runtime.Object
}

// ObjectList is a list of objects, in any of the three forms.
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}

// ObjectKey names an object within its kind. Namespace is empty for kinds without one.
type ObjectKey = types.NamespacedName

// ObjectKeyFromObject returns the key of obj, which must not be nil.
func ObjectKeyFromObject(obj Object) ObjectKey {
	return ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// IndexerFunc gives the values under which an object is found in an index; none keeps it out of the index. It must not
// change the object, may be called from several goroutines at once and is called again whenever the object changes.
type IndexerFunc func(Object) []string

// FieldIndexer adds indexes to a cache.
type FieldIndexer interface {
	// IndexField adds an index of obj's kind under the name field, which MatchingFields asks by. Only obj's type and kind
	// are used. It is an error to add the same field of a kind twice. It does not wait for the cache to be filled.
	IndexField(ctx context.Context, obj Object, field string, extractValue IndexerFunc) error
}
