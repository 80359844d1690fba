// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// fieldIndex turns a user's function into the index function of an entry. Functions registered with a metadata
// object are given metadata, whatever the store holds.
func (e *entry) fieldIndex(form apiutil.Form, values client.IndexerFunc) toolscache.IndexFunc {
	return func(in any) ([]string, error) {
		obj, ok := in.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%T is no object", in)
		}
		if form == apiutil.Metadata {
			m, err := metadataOf(in.(runtime.Object), e.gvk)
			if err != nil {
				return nil, err
			}
			obj = m
		}
		return values(obj), nil
	}
}

// addIndexers adds indexes to all stores of the entry, all or none.
func (e *entry) addIndexers(more toolscache.Indexers) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return fmt.Errorf("the informer of %s has stopped: an index can not be added", e.gvk)
	}
	for name := range more {
		if _, ok := e.indexes[name]; ok {
			return fmt.Errorf("indexer conflict: %s has an index on field %q already; register it once, under a name of its own",
				e.gvk, fieldOf(name))
		}
	}
	maps.Copy(e.indexes, more)
	for _, s := range []*set{e.current, e.next} {
		if s == nil {
			continue
		}
		for _, p := range s.parts {
			if err := p.store.AddIndexers(fit(s, more)); err != nil {
				return err // cannot be: every index of a store is one of the entry's
			}
		}
	}
	return nil
}

// indexesFor returns the entry's indexes that a set can compute. The caller holds mu.
func (e *entry) indexesFor(s *set) toolscache.Indexers { return fit(s, e.indexes) }

// fit leaves out indexes over whole objects where only metadata is stored.
func fit(s *set, indexes toolscache.Indexers) toolscache.Indexers {
	out := toolscache.Indexers{}
	for name, values := range indexes {
		if s.form == apiutil.Metadata && strings.HasPrefix(name, fieldIndexPrefix) {
			continue
		}
		out[name] = values
	}
	return out
}

func fieldOf(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, metadataIndexPrefix), fieldIndexPrefix)
}
