// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// indexes are the functions by which MatchingFields selects. They are asked when a list is, so they see every object.
type indexes struct {
	kinds *kinds

	mu     sync.RWMutex
	byKind map[schema.GroupVersionKind]map[string]func(client.Object) []string // guarded by mu
}

// of gives the function of a field, nil if there is none.
func (x *indexes) of(gvk schema.GroupVersionKind, field string) func(client.Object) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byKind[gvk][field]
}

// add registers an index. The function gets objects of the form that obj has.
func (x *indexes) add(obj runtime.Object, field string, extract client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(obj, x.kinds.scheme)
	if err != nil {
		return fmt.Errorf("add index on field %q: %w", field, err)
	}
	k := x.kinds.of(gvk)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byKind[gvk] == nil {
		x.byKind[gvk] = map[string]func(client.Object) []string{}
	}
	if _, ok := x.byKind[gvk][field]; ok {
		return fmt.Errorf("indexer conflict: field %q of %v is indexed already", field, gvk)
	}
	form := obj.DeepCopyObject()
	x.byKind[gvk][field] = func(stored client.Object) []string {
		seen := form.DeepCopyObject().(client.Object) // the function may keep or change what it is given
		if err := x.kinds.fill(k, stored, seen); err != nil {
			return nil
		}
		return extract(seen)
	}
	return nil
}
