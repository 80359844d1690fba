// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"cmp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
)

const (
	// firstVersion is the resourceVersion of an object that was created, preloadedVersion that of one given to the builder
	// without one. Tests in the field assert both.
	firstVersion     = 1
	preloadedVersion = 999
)

// record is one object. It is replaced, not changed, by a write, so readers may keep it without a lock; only its managed
// fields are settled in place, under the store's lock.
type record struct {
	obj     client.Object
	pending []pendingWrite
}

// rows keeps the records of all kinds. The engine's lock is held around each call.
type rows interface {
	// get gives nil without an error for an object that is not there.
	get(k *kind, key types.NamespacedName) (*record, error)
	// put keeps r under key; old is what it replaces, nil for a new object.
	put(k *kind, key types.NamespacedName, r, old *record) error
	remove(k *kind, key types.NamespacedName, last client.Object) error
	// all gives the records in a namespace, or in all of them, ordered by namespace and name.
	all(k *kind, namespace string) ([]*record, error)
}

// memory is rows in maps.
type memory map[schema.GroupVersionResource]*table

// table is one resource.
type table struct {
	rows  map[types.NamespacedName]*record
	order []types.NamespacedName // nil when it has to be made anew
}

func (m memory) get(k *kind, key types.NamespacedName) (*record, error) {
	if t := m[k.gvr]; t != nil {
		return t.rows[key], nil
	}
	return nil, nil
}

func (m memory) put(k *kind, key types.NamespacedName, r, old *record) error {
	t := m[k.gvr]
	if t == nil {
		t = &table{rows: map[types.NamespacedName]*record{}}
		m[k.gvr] = t
	}
	t.rows[key] = r
	if old == nil {
		t.order = nil
	}
	return nil
}

func (m memory) remove(k *kind, key types.NamespacedName, _ client.Object) error {
	t := m[k.gvr]
	delete(t.rows, key)
	t.order = nil
	return nil
}

func (m memory) all(k *kind, namespace string) ([]*record, error) {
	t := m[k.gvr]
	if t == nil {
		return nil, nil
	}
	if t.order == nil {
		t.order = make([]types.NamespacedName, 0, len(t.rows))
		for key := range t.rows {
			t.order = append(t.order, key)
		}
		slices.SortFunc(t.order, compareKeys)
	}
	var found []*record
	for _, key := range t.order {
		if namespace == "" || key.Namespace == namespace {
			found = append(found, t.rows[key])
		}
	}
	return found, nil
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// kindAndKey tells one record of all.
type kindAndKey struct {
	gvk schema.GroupVersionKind
	key types.NamespacedName
}

// anyIn reports whether there is anything in a namespace.
func (m memory) anyIn(namespace string) bool {
	for _, t := range m {
		for key := range t.rows {
			if key.Namespace == namespace {
				return true
			}
		}
	}
	return false
}

// eachIn calls do with everything in a namespace. do may remove what it is given.
func (m memory) eachIn(namespace string, do func(kindAndKey, *record) error) error {
	for _, t := range m {
		for key, r := range t.rows {
			if key.Namespace != namespace {
				continue
			}
			if err := do(kindAndKey{r.obj.GetObjectKind().GroupVersionKind(), key}, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// versions numbers writes: each object for itself, or all with one counter.
type versions struct {
	global  bool
	current uint64
}

// next gives the version of a write; old is the object it replaces, nil for a new one.
func (v *versions) next(old client.Object) string {
	if v.global {
		v.current++
		return strconv.FormatUint(v.current, 10)
	}
	if old == nil {
		return strconv.Itoa(firstVersion)
	}
	n, err := strconv.ParseUint(old.GetResourceVersion(), 10, 64)
	if err != nil {
		n = preloadedVersion // a fixture had a version that is no number
	}
	return strconv.FormatUint(n+1, 10)
}

// preloaded gives the version of a fixture, own being what it carries.
func (v *versions) preloaded(own string) string {
	if v.global {
		if n, err := strconv.ParseUint(own, 10, 64); err == nil {
			v.current = max(v.current, n)
			return own
		}
		return v.next(nil)
	}
	return cmp.Or(own, strconv.Itoa(preloadedVersion))
}
