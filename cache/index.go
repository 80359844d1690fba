// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
)

// index maps each value its function gives for an object to the objects that have it, in key order.
type index struct {
	name     string
	values   toolscache.IndexFunc
	postings map[string]*order
	// broken holds, per key, why the function gave no values. A read over the index fails with it while
	// such an object is stored: an answer without the object would be a silent lie.
	broken map[string]error
}

func newIndex(name string, values toolscache.IndexFunc) *index {
	return &index{name: name, values: values, postings: map[string]*order{}}
}

// valuesOf calls the user's function and turns its panic into an error.
func (x *index) valuesOf(obj any) (values []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("its function panicked: %v", p)
		}
	}()
	return x.values(obj)
}

// put files the item under the values of obj. Values given twice count once.
func (x *index) put(it *item, obj any) {
	values, err := x.valuesOf(obj)
	if err != nil {
		x.breaks(it.key, obj, err)
		return
	}
	for _, v := range values {
		x.file(v, it)
	}
}

// take removes the item from under the values of obj.
func (x *index) take(it *item, obj any) {
	if x.broken != nil {
		delete(x.broken, it.key)
	}
	values, err := x.valuesOf(obj)
	if err != nil {
		return // put found the same and filed nothing
	}
	for _, v := range values {
		x.unfile(v, it.key)
	}
}

// move refiles the item when its object changes from old to obj, touching only what differs.
func (x *index) move(it *item, old, obj any) {
	before, errBefore := x.valuesOf(old)
	after, errAfter := x.valuesOf(obj)
	if errBefore != nil || errAfter != nil {
		x.take(it, old)
		x.put(it, obj)
		return
	}
	if slices.Equal(before, after) {
		return
	}
	for _, v := range before {
		if !slices.Contains(after, v) {
			x.unfile(v, it.key)
		}
	}
	for _, v := range after {
		if !slices.Contains(before, v) {
			x.file(v, it)
		}
	}
}

func (x *index) file(value string, it *item) {
	p := x.postings[value]
	if p == nil {
		p = &order{}
		x.postings[value] = p
	}
	p.insert(it)
}

func (x *index) unfile(value, key string) {
	p := x.postings[value]
	if p == nil {
		return
	}
	p.remove(key)
	if p.len() == 0 {
		delete(x.postings, value)
	}
}

func (x *index) breaks(key string, obj any, err error) {
	if x.broken == nil {
		x.broken = map[string]error{}
	}
	x.broken[key] = fmt.Errorf("index %q of %T %s: %w", x.name, obj, key, err)
}

// fault returns one of the errors that keep the index from being complete, or nil.
func (x *index) fault() error {
	for _, err := range x.broken {
		return err
	}
	return nil
}

// labelValue is the index function of a label key: the object's value, or nothing when it has no such label.
func labelValue(key string) toolscache.IndexFunc {
	return func(obj any) ([]string, error) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		if v, ok := m.GetLabels()[key]; ok {
			return []string{v}, nil
		}
		return nil, nil
	}
}
