// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
)

// maxLabelIndexes bounds how many label keys one store indexes. Each costs a little on every event, so a
// program that selects by ever new keys falls back to looking at each object.
const maxLabelIndexes = 16

// store holds the objects of one kind in one set of namespaces, in key order and indexed, and knows the
// resourceVersion it stands at. It is a client-go Indexer; what it adds is the version, the order and
// reads that intersect several indexes. It calls nobody while it holds its lock except index functions.
type store struct {
	mu      sync.RWMutex
	items   map[string]*item
	order   order
	version string
	// indexes are those users registered, labels those built on first use, by label key.
	indexes map[string]*index
	labels  map[string]*index
}

var _ toolscache.Indexer = (*store)(nil)

func newStore() *store {
	return &store{items: map[string]*item{}, indexes: map[string]*index{}, labels: map[string]*index{}}
}

// keyOf returns "namespace/name", or "name" without a namespace.
func keyOf(obj any) (string, error) {
	return toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj)
}

// advance raises the version to v if v is newer. The caller holds the lock.
func (s *store) advance(v string) {
	if newer(v, s.version) {
		s.version = v
	}
}

// set stores obj and raises the version to v; it returns what it replaced, if anything.
func (s *store) set(key string, obj any, v string) (old any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(v)
	return s.setLocked(key, obj)
}

func (s *store) setLocked(key string, obj any) (old any) {
	if it, ok := s.items[key]; ok {
		old, it.obj = it.obj, obj
		for _, x := range s.indexes {
			x.move(it, old, obj)
		}
		for _, x := range s.labels {
			x.move(it, old, obj)
		}
		return old
	}
	it := &item{key: key, obj: obj}
	s.items[key] = it
	s.order.insert(it)
	for _, x := range s.indexes {
		x.put(it, obj)
	}
	for _, x := range s.labels {
		x.put(it, obj)
	}
	return nil
}

// drop removes key and raises the version to v; it returns what was stored, if anything.
func (s *store) drop(key, v string) (old any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(v)
	it, ok := s.items[key]
	if !ok {
		return nil
	}
	delete(s.items, key)
	s.order.remove(key)
	for _, x := range s.indexes {
		x.take(it, it.obj)
	}
	for _, x := range s.labels {
		x.take(it, it.obj)
	}
	return it.obj
}

// swap makes the store hold exactly objs at version v, which may be below the version it had (a restored
// server), and returns what it held before.
func (s *store) swap(objs map[string]any, v string) (before map[string]any) {
	sorted := make([]*item, 0, len(objs))
	items := make(map[string]*item, len(objs))
	for key, obj := range objs {
		it := &item{key: key, obj: obj}
		items[key] = it
		sorted = append(sorted, it)
	}
	slices.SortFunc(sorted, func(a, b *item) int { return cmp.Compare(a.key, b.key) })

	s.mu.Lock()
	defer s.mu.Unlock()
	before = make(map[string]any, len(s.items))
	for key, it := range s.items {
		before[key] = it.obj
	}
	s.items, s.version = items, v
	s.order.fill(sorted)
	for name, x := range s.indexes {
		s.indexes[name] = s.build(name, x.values, sorted)
	}
	for key, x := range s.labels {
		s.labels[key] = s.build(x.name, x.values, sorted)
	}
	return before
}

func (s *store) build(name string, values toolscache.IndexFunc, items []*item) *index {
	x := newIndex(name, values)
	for _, it := range items {
		x.put(it, it.obj)
	}
	return x
}

// at returns the version the store stands at.
func (s *store) at() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// get returns the object under key, or nil.
func (s *store) get(key string) any {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if it, ok := s.items[key]; ok {
		return it.obj
	}
	return nil
}

// named returns the object with a name, in a namespace unless that is empty, or nil. Unlike get it needs no key in memory
// of its own.
func (s *store) named(namespace, name string) (obj any) {
	var room [96]byte // most keys fit
	key := append(room[:0], namespace...)
	if namespace != "" {
		key = append(key, '/')
	}
	key = append(key, name...)
	s.mu.RLock()
	if it := s.items[string(key)]; it != nil {
		obj = it.obj
	}
	s.mu.RUnlock()
	return obj
}

// getAt returns the object under key, or nil, and the version it was seen at.
func (s *store) getAt(key string) (obj any, version string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if it, ok := s.items[key]; ok {
		obj = it.obj
	}
	return obj, s.version
}

// size returns the number of objects.
func (s *store) size() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.items)
}

// The rest is client-go's Indexer, for users who reach the store through an informer. It changes the store
// without telling any handler, so only the feed of an entry and tests call the changing half.

// Add stores obj under its key.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update stores obj under its key.
func (s *store) Update(obj any) error {
	key, err := keyOf(obj)
	if err != nil {
		return err
	}
	s.set(key, obj, versionOf(obj))
	return nil
}

// Delete removes the object with obj's key.
func (s *store) Delete(obj any) error {
	key, err := keyOf(obj)
	if err != nil {
		return err
	}
	s.drop(key, versionOf(obj))
	return nil
}

// List returns all objects in key order.
func (s *store) List() []any {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]any, 0, s.order.len())
	for it := range s.order.from("", "") {
		out = append(out, it.obj)
	}
	return out
}

// ListKeys returns all keys in order.
func (s *store) ListKeys() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]string, 0, s.order.len())
	for it := range s.order.from("", "") {
		out = append(out, it.key)
	}
	return out
}

// LastStoreSyncResourceVersion returns the version the store stands at.
func (s *store) LastStoreSyncResourceVersion() string { return s.at() }

// Bookmark raises the version the store stands at.
func (s *store) Bookmark(v string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(v)
}

// Get returns the stored object with obj's key.
func (s *store) Get(obj any) (any, bool, error) {
	key, err := keyOf(obj)
	if err != nil {
		return nil, false, err
	}
	return s.GetByKey(key)
}

// GetByKey returns the object stored under key.
func (s *store) GetByKey(key string) (any, bool, error) {
	obj := s.get(key)
	return obj, obj != nil, nil
}

// Replace makes the store hold exactly objs at version v.
func (s *store) Replace(objs []any, v string) error {
	keyed := make(map[string]any, len(objs))
	for _, obj := range objs {
		key, err := keyOf(obj)
		if err != nil {
			return err
		}
		keyed[key] = obj
	}
	s.swap(keyed, v)
	return nil
}

// Resync does nothing: an entry resyncs its handlers itself.
func (s *store) Resync() error { return nil }

// Index returns the objects that share a value of the named index with obj.
func (s *store) Index(name string, obj any) ([]any, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.indexNamed(name)
	if err != nil {
		return nil, err
	}
	values, err := x.valuesOf(obj)
	if err != nil {
		return nil, err
	}
	var found order
	for _, v := range values {
		if p := x.postings[v]; p != nil {
			for it := range p.from("", "") {
				found.insert(it)
			}
		}
	}
	return objects(&found), nil
}

// IndexKeys returns the keys of the objects that have value in the named index.
func (s *store) IndexKeys(name, value string) ([]string, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.indexNamed(name)
	if err != nil {
		return nil, err
	}
	var keys []string
	if p := x.postings[value]; p != nil {
		for it := range p.from("", "") {
			keys = append(keys, it.key)
		}
	}
	return keys, nil
}

// ListIndexFuncValues returns, sorted, all values of the named index.
func (s *store) ListIndexFuncValues(name string) []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x := s.indexes[name]
	if x == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(x.postings))
}

// ByIndex returns the objects that have value in the named index.
func (s *store) ByIndex(name, value string) ([]any, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	x, err := s.indexNamed(name)
	if err != nil {
		return nil, err
	}
	if p := x.postings[value]; p != nil {
		return objects(p), nil
	}
	return nil, nil
}

// GetIndexers returns the functions of the registered indexes.
func (s *store) GetIndexers() toolscache.Indexers {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make(toolscache.Indexers, len(s.indexes))
	for name, x := range s.indexes {
		out[name] = x.values
	}
	return out
}

// AddIndexers registers more indexes, all or none, and fills them with what is stored.
func (s *store) AddIndexers(more toolscache.Indexers) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range more {
		if _, ok := s.indexes[name]; ok {
			return fmt.Errorf("indexer conflict: an index named %q is there already", name)
		}
	}
	all := slices.Collect(s.order.from("", ""))
	for name, values := range more {
		s.indexes[name] = s.build(name, values, all)
	}
	return nil
}

// indexNamed returns a registered index. The caller holds the lock.
func (s *store) indexNamed(name string) (*index, error) {
	if x := s.indexes[name]; x != nil {
		return x, x.fault()
	}
	return nil, fmt.Errorf("no index named %q", name)
}

// labelIndex returns the index of a label key and builds it on first use, or nil above the limit.
func (s *store) labelIndex(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.labels[key] != nil || len(s.labels) >= maxLabelIndexes {
		return
	}
	s.labels[key] = s.build("label "+key, labelValue(key), slices.Collect(s.order.from("", "")))
}

func objects(o *order) []any {
	out := make([]any, 0, o.len())
	for it := range o.from("", "") {
		out = append(out, it.obj)
	}
	return out
}

// snapshot returns all objects with their keys, in order.
func (s *store) snapshot() []stored {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]stored, 0, s.order.len())
	for it := range s.order.from("", "") {
		out = append(out, stored{it.key, it.obj})
	}
	return out
}
