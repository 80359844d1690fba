// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// customConverter tells the field manager the structure of kinds whose schema nobody has given: metadata is that of every
// kind, so that finalizers and owner references merge as on the server, and the rest is deduced from the object.
type customConverter struct{}

var _ managedfields.TypeConverter = customConverter{}

var customType = sync.OnceValues(func() (typed.ParseableType, error) {
	parser, err := typed.NewParser(customSchema)
	if err != nil {
		return typed.ParseableType{}, err
	}
	return parser.Type("custom"), nil
})

func (customConverter) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	t, err := customType()
	if err != nil {
		return nil, err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return t.FromUnstructured(u.Object, opts...)
	}
	return t.FromStructured(obj, opts...)
}

func (customConverter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return managedfields.NewDeducedTypeConverter().TypedToObject(value)
}

// customSchema names the fields that every kind has, so that they are parts of a structure. What is deduced is a tree of maps
// whose keys belong to whoever set them, and of lists that belong to one owner as a whole.
const customSchema = `types:
- name: custom
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}}
    - {name: kind, type: {scalar: string}}
    - {name: metadata, type: {namedType: metadata}, default: {}}
    - {name: spec, type: {namedType: deduced}}
    - {name: status, type: {namedType: deduced}}
    elementType: {namedType: deduced}
- name: metadata
  map:
    fields:
    - {name: annotations, type: {map: {elementType: {scalar: string}}}}
    - {name: creationTimestamp, type: {scalar: untyped}}
    - {name: deletionGracePeriodSeconds, type: {scalar: numeric}}
    - {name: deletionTimestamp, type: {scalar: untyped}}
    - {name: finalizers, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - {name: generateName, type: {scalar: string}}
    - {name: generation, type: {scalar: numeric}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: managedFields, type: {list: {elementType: {namedType: deduced}, elementRelationship: atomic}}}
    - {name: name, type: {scalar: string}}
    - {name: namespace, type: {scalar: string}}
    - {name: ownerReferences, type: {list: {elementType: {namedType: owner}, elementRelationship: associative, keys: [uid]}}}
    - {name: resourceVersion, type: {scalar: string}}
    - {name: selfLink, type: {scalar: string}}
    - {name: uid, type: {scalar: string}}
- name: owner
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}, default: ""}
    - {name: blockOwnerDeletion, type: {scalar: boolean}}
    - {name: controller, type: {scalar: boolean}}
    - {name: kind, type: {scalar: string}, default: ""}
    - {name: name, type: {scalar: string}, default: ""}
    - {name: uid, type: {scalar: string}, default: ""}
    elementRelationship: atomic
- name: deduced
  scalar: untyped
  list:
    elementType: {namedType: atomic}
    elementRelationship: atomic
  map:
    elementType: {namedType: deduced}
    elementRelationship: separable
- name: atomic
  scalar: untyped
  list:
    elementType: {namedType: atomic}
    elementRelationship: atomic
  map:
    elementType: {namedType: atomic}
    elementRelationship: atomic
`
