// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// kind reads the objects of a kind in one form. It is what a read needs to know of them: resolved once, then found
// by one look-up, here or in a client.
type kind struct {
	cache *informerCache
	gvk   schema.GroupVersionKind
	form  apiutil.Form
	// entry is the kind's entry, if it has one.
	entry atomic.Pointer[entry]
}

func (k *kind) key() entryKey { return entryKey{k.gvk, familyOf(k.form)} }

// live returns the set to read from, or nil if the read has to wait or to make one.
func (k *kind) live() *set {
	e := k.entry.Load()
	if e == nil {
		return nil
	}
	s := e.live.Load()
	if s == nil || !s.serves(k.form) {
		return nil
	}
	return s
}

// kindTable remembers kinds: by Go type for typed objects and lists, by name for the others. It holds at most
// one kind for each Go type and each name that the program reads.
type kindTable struct {
	byType sync.Map // reflect.Type → *kind
	byName sync.Map // kindName → *kind
	cache  *informerCache
}

type kindName struct {
	gvk  schema.GroupVersionKind
	form apiutil.Form
}

// ofObject tells the kind of an object.
func (t *kindTable) ofObject(obj runtime.Object) (*kind, error) {
	return t.find(obj, func(gvk schema.GroupVersionKind) schema.GroupVersionKind { return gvk })
}

// ofList tells the kind of a list's items.
func (t *kindTable) ofList(list runtime.Object) (*kind, error) { return t.find(list, apiutil.ItemKind) }

func (t *kindTable) find(obj runtime.Object, kindOf func(schema.GroupVersionKind) schema.GroupVersionKind) (*kind, error) {
	if k, ok := t.byType.Load(reflect.TypeOf(obj)); ok && !apiutil.IsNil(obj) {
		return k.(*kind), nil
	}
	gvk, err := apiutil.GVKForObject(obj, t.cache.scheme)
	if err != nil {
		return nil, err
	}
	k := t.named(kindOf(gvk), apiutil.FormOf(obj))
	if apiutil.TypeTellsKind(obj, t.cache.scheme) { // else the object's own TypeMeta decides each time
		t.byType.Store(reflect.TypeOf(obj), k)
	}
	return k, nil
}

func (t *kindTable) named(gvk schema.GroupVersionKind, form apiutil.Form) *kind {
	name := kindName{gvk, form}
	if k, ok := t.byName.Load(name); ok {
		return k.(*kind)
	}
	k, _ := t.byName.LoadOrStore(name, &kind{cache: t.cache, gvk: gvk, form: form})
	return k.(*kind)
}

// forget makes all kinds look for their entry anew that had this one.
func (t *kindTable) forget(e *entry) {
	t.byName.Range(func(_, v any) bool {
		v.(*kind).entry.CompareAndSwap(e, nil)
		return true
	})
}

// itemOf returns an empty object of the kind that a list's items have, in the list's form.
func itemOf(list runtime.Object, gvk schema.GroupVersionKind, scheme *runtime.Scheme) (runtime.Object, error) {
	switch apiutil.FormOf(list) {
	case apiutil.Unstructured:
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		return u, nil
	case apiutil.Metadata:
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(gvk)
		return m, nil
	}
	ptr, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, err
	}
	elem := reflect.TypeOf(ptr).Elem().Elem()
	if elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	if elem.Kind() == reflect.Struct {
		if obj, ok := reflect.New(elem).Interface().(runtime.Object); ok {
			return obj, nil
		}
	}
	obj, err := scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("make a %s for the items of a %T: %w", gvk, list, err)
	}
	return obj, nil
}
