// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrNilObject is returned, wrapped, where an object is asked for and nil was given.
var ErrNilObject = errors.New("object is nil")

// listSuffix ends the kind of every list.
const listSuffix = "List"

// GVKForObject tells which kind obj is.
//
// Unstructured and metadata objects say so themselves; a missing kind or version is an error for which
// runtime.IsMissingKind or runtime.IsMissingVersion is true. Typed objects are looked up in scheme. An unregistered type is
// an error for which runtime.IsNotRegisteredError is true, unless scheme is the default scheme and the type comes from
// k8s.io/api. A type that is registered for more than one kind is an error too, unless obj's own TypeMeta names one of them.
//
// obj is only read. A nil obj is an error that wraps ErrNilObject. A nil scheme stands for the default scheme.
func GVKForObject(obj runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	if IsNil(obj) {
		return schema.GroupVersionKind{}, fmt.Errorf("tell the kind of a %T: %w", obj, ErrNilObject)
	}
	if FormOf(obj) != Typed {
		return declaredKind(obj)
	}
	if scheme == nil {
		scheme = DefaultScheme()
	}
	kinds, unversioned, err := scheme.ObjectKinds(obj)
	switch {
	case err != nil:
		return kindOutsideScheme(obj, scheme, err)
	case unversioned:
		return schema.GroupVersionKind{}, fmt.Errorf("cannot tell group, version and kind of a %T: the type is registered without a version", obj)
	case len(kinds) == 1:
		return kinds[0], nil
	}
	declared := obj.GetObjectKind().GroupVersionKind()
	for _, kind := range kinds {
		if kind == declared {
			return kind, nil
		}
	}
	return schema.GroupVersionKind{}, fmt.Errorf("%T is registered for several kinds %v: set the object's TypeMeta to one of them", obj, kinds)
}

// TypeTellsKind reports whether objects of obj's Go type are all of one kind, so that what GVKForObject answers for one of
// them holds for each: they are typed, and the type is not registered for several kinds. obj is one for which GVKForObject
// gives no error.
func TypeTellsKind(obj runtime.Object, scheme *runtime.Scheme) bool {
	if FormOf(obj) != Typed {
		return false
	}
	if scheme == nil {
		scheme = DefaultScheme()
	}
	kinds, _, err := scheme.ObjectKinds(obj)
	return err != nil || len(kinds) == 1
}

// declaredKind reads the kind that an unstructured or metadata object carries.
func declaredKind(obj runtime.Object) (schema.GroupVersionKind, error) {
	kind := obj.GetObjectKind().GroupVersionKind()
	switch {
	case kind.Kind == "":
		return schema.GroupVersionKind{}, runtime.NewMissingKindErr(fmt.Sprintf("%T has no kind: call SetGroupVersionKind", obj))
	case kind.Version == "":
		return schema.GroupVersionKind{}, runtime.NewMissingVersionErr(fmt.Sprintf("%T has no apiVersion: call SetGroupVersionKind", obj))
	}
	return kind, nil
}

// ItemKind gives the kind of the items of a list of the given kind: PodList to Pod. Any other kind is returned as it is.
func ItemKind(list schema.GroupVersionKind) schema.GroupVersionKind {
	list.Kind = strings.TrimSuffix(list.Kind, listSuffix)
	return list
}

// ListKind gives the kind of a list of the given kind: Pod to PodList.
func ListKind(item schema.GroupVersionKind) schema.GroupVersionKind {
	item.Kind += listSuffix
	return item
}

// IsObjectNamespaced reports whether objects of obj's kind, for a list those of its items, live in a namespace. It fails
// as GVKForObject and IsGVKNamespaced do.
func IsObjectNamespaced(obj runtime.Object, scheme *runtime.Scheme, mapper meta.RESTMapper) (bool, error) {
	kind, err := GVKForObject(obj, scheme)
	if err != nil {
		return false, err
	}
	if meta.IsListType(obj) {
		kind = ItemKind(kind)
	}
	return IsGVKNamespaced(kind, mapper)
}

// IsGVKNamespaced reports whether objects of the kind live in a namespace. A kind that mapper does not know is an error
// for which meta.IsNoMatchError is true.
func IsGVKNamespaced(kind schema.GroupVersionKind, mapper meta.RESTMapper) (bool, error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return false, fmt.Errorf("tell the scope of %s: %w", kind, err)
	}
	switch name := mapping.Scope.Name(); name {
	case meta.RESTScopeNameNamespace:
		return true, nil
	case meta.RESTScopeNameRoot:
		return false, nil
	default:
		return false, fmt.Errorf("tell the scope of %s: the mapper gives %q, which is no scope", kind, name)
	}
}
