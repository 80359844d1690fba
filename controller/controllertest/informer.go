// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// InformerOptions are the settings of a FakeInformer.
type InformerOptions struct {
	// Synced makes the informer synced from the start.
	Synced bool
}

// InformerOption changes the settings of a FakeInformer.
type InformerOption interface {
	Apply(*InformerOptions)
}

type synced bool

// Apply implements InformerOption.
func (s synced) Apply(o *InformerOptions) { o.Synced = bool(s) }

// Synced makes a FakeInformer synced from the start.
var Synced = synced(true)

// FakeInformer is an informer without a server: a test says what happens with
// Add, Update and Delete, and all handlers have heard of it when these return.
// A handler that is added later is told of the objects that are there, as of
// an initial list. The zero value is an empty informer that has not synced. It
// is safe for concurrent use; handlers must not call it.
type FakeInformer struct {
	// RunCount is how often Run or RunWithContext was called.
	RunCount int

	mu       sync.Mutex
	done     chan struct{} // closed when synced
	synced   bool
	handlers []*registration
	indexer  toolscache.Indexer
}

var _ toolscache.SharedIndexInformer = &FakeInformer{}

// NewFakeInformer makes an informer.
func NewFakeInformer(opts ...InformerOption) *FakeInformer {
	var o InformerOptions
	for _, opt := range opts {
		opt.Apply(&o)
	}
	f := &FakeInformer{}
	if o.Synced {
		f.Synced()
	}
	return f
}

// registration is a handler of an informer.
type registration struct {
	informer *FakeInformer
	handler  toolscache.ResourceEventHandler
}

func (r *registration) HasSynced() bool { return r.informer.HasSynced() }

func (r *registration) HasSyncedChecker() toolscache.DoneChecker {
	return r.informer.HasSyncedChecker()
}

// prepare makes what the zero value lacks. f.mu is held.
func (f *FakeInformer) prepare() {
	if f.done == nil {
		f.done = make(chan struct{})
	}
	if f.indexer == nil {
		f.indexer = toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{
			toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
		})
	}
}

// Synced makes the informer and all handlers synced.
func (f *FakeInformer) Synced() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepare()
	if !f.synced {
		f.synced = true
		close(f.done)
	}
}

// Add adds an object and tells the handlers.
func (f *FakeInformer) Add(obj metav1.Object) {
	f.tell(func(i toolscache.Indexer) error { return i.Add(obj) }, func(h toolscache.ResourceEventHandler) { h.OnAdd(obj, false) })
}

// Update replaces an object and tells the handlers.
func (f *FakeInformer) Update(oldObj, newObj metav1.Object) {
	f.tell(func(i toolscache.Indexer) error { return i.Update(newObj) }, func(h toolscache.ResourceEventHandler) { h.OnUpdate(oldObj, newObj) })
}

// Delete removes an object and tells the handlers.
func (f *FakeInformer) Delete(obj metav1.Object) {
	f.tell(func(i toolscache.Indexer) error { return i.Delete(obj) }, func(h toolscache.ResourceEventHandler) { h.OnDelete(obj) })
}

// tell changes the store and tells the handlers. An object without a key that
// the store could use is told of all the same.
func (f *FakeInformer) tell(change func(toolscache.Indexer) error, event func(toolscache.ResourceEventHandler)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepare()
	_ = change(f.indexer)
	for _, r := range f.handlers {
		event(r.handler)
	}
}

// AddEventHandler implements SharedInformer.
func (f *FakeInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepare()
	r := &registration{informer: f, handler: handler}
	f.handlers = append(f.handlers, r)
	for _, obj := range f.indexer.List() {
		handler.OnAdd(obj, true)
	}
	return r, nil
}

// AddEventHandlerWithResyncPeriod implements SharedInformer. There are no
// resyncs.
func (f *FakeInformer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

// AddEventHandlerWithOptions implements SharedInformer. The options have no
// effect.
func (f *FakeInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return f.AddEventHandler(handler)
}

// RemoveEventHandler implements SharedInformer.
func (f *FakeInformer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range f.handlers {
		if toolscache.ResourceEventHandlerRegistration(r) == handle {
			f.handlers = append(f.handlers[:i:i], f.handlers[i+1:]...)
			break
		}
	}
	return nil
}

// Handlers is how many handlers the informer has.
func (f *FakeInformer) Handlers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.handlers)
}

// HasSynced implements SharedInformer.
func (f *FakeInformer) HasSynced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.synced
}

// HasSyncedChecker implements SharedInformer.
func (f *FakeInformer) HasSyncedChecker() toolscache.DoneChecker { return checker{f} }

type checker struct{ informer *FakeInformer }

func (c checker) Name() string          { return c.informer.Name() }
func (c checker) Done() <-chan struct{} { return c.informer.Done() }

// Name is a name for log lines.
func (f *FakeInformer) Name() string { return "fake informer" }

// Done is closed when the informer has synced.
func (f *FakeInformer) Done() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepare()
	return f.done
}

// AddIndexers implements SharedIndexInformer.
func (f *FakeInformer) AddIndexers(indexers toolscache.Indexers) error {
	return f.GetIndexer().AddIndexers(indexers)
}

// GetIndexer implements SharedIndexInformer.
func (f *FakeInformer) GetIndexer() toolscache.Indexer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.prepare()
	return f.indexer
}

// GetStore implements SharedInformer.
func (f *FakeInformer) GetStore() toolscache.Store { return f.GetIndexer() }

// Informer is the informer itself.
func (f *FakeInformer) Informer() toolscache.SharedIndexInformer { return f }

// GetController implements SharedInformer. There is none.
func (f *FakeInformer) GetController() toolscache.Controller { return nil }

// Run counts itself and returns.
func (f *FakeInformer) Run(<-chan struct{}) { f.run() }

// RunWithContext counts itself and returns.
func (f *FakeInformer) RunWithContext(context.Context) { f.run() }

func (f *FakeInformer) run() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.RunCount++
}

// LastSyncResourceVersion implements SharedInformer. It is empty.
func (f *FakeInformer) LastSyncResourceVersion() string { return "" }

// SetWatchErrorHandler implements SharedInformer. There are no watch errors.
func (f *FakeInformer) SetWatchErrorHandler(toolscache.WatchErrorHandler) error { return nil }

// SetWatchErrorHandlerWithContext implements SharedInformer. There are no
// watch errors.
func (f *FakeInformer) SetWatchErrorHandlerWithContext(toolscache.WatchErrorHandlerWithContext) error {
	return nil
}

// SetTransform implements SharedInformer. Nothing is transformed.
func (f *FakeInformer) SetTransform(toolscache.TransformFunc) error { return nil }

// IsStopped implements SharedInformer.
func (f *FakeInformer) IsStopped() bool { return false }
