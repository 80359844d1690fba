// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/cache/cacheapi"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// handlerStopLimit is how long the end of a cache waits for handlers that are running.
const handlerStopLimit = 5 * time.Second

// registration is one handler of an entry.
type registration struct {
	entry   *entry
	handler toolscache.ResourceEventHandler
	form    apiutil.Form
	// hand stands between the store and a handler that may block; nil for an inline handler.
	hand *handoff
	// period is the handler's own resync period; negative for that of the namespaces.
	period  time.Duration
	resync  *time.Timer // guarded by entry.deliverMu
	removed atomic.Bool
	synced  chan struct{} // of an inline handler
	once    sync.Once
}

var _ toolscache.ResourceEventHandlerRegistration = (*registration)(nil)

// add makes a handler hear of everything that is there and of every change from now on.
func (e *entry) add(handler toolscache.ResourceEventHandler, form apiutil.Form, period *time.Duration) (*registration, error) {
	if handler == nil {
		return nil, errors.New("the event handler is nil")
	}
	r := &registration{entry: e, handler: handler, form: form, period: -1, synced: make(chan struct{})}
	if period != nil {
		r.period = *period
	}
	if inline, ok := handler.(cacheapi.InlineHandler); !ok || !inline.Inline() {
		r.hand = newHandoff(func(key string, c change) {
			if !r.removed.Load() {
				tell(r.handler, key, c)
			}
		})
	}
	e.deliverMu.Lock()
	defer e.deliverMu.Unlock()
	e.mu.Lock()
	stopped := e.stopped
	e.mu.Unlock()
	if stopped {
		return nil, fmt.Errorf("the informer of %s has stopped: a handler can not be added", e.gvk)
	}
	s, full := e.telling(form)
	if s != nil {
		for _, p := range s.parts {
			for _, it := range p.store.snapshot() {
				r.send(it.key, change{new: it.obj, initial: true})
			}
		}
	}
	if full {
		r.filled()
	}
	e.handlers = append(e.handlers[:len(e.handlers):len(e.handlers)], r)
	r.scheduleResync()
	return r, nil
}

// send hands a change to the handler. The caller holds deliverMu.
func (r *registration) send(key string, c change) {
	if r.form == apiutil.Metadata {
		c.old, c.new = r.metadataOf(c)
	}
	if r.hand != nil {
		r.hand.put(key, c)
		return
	}
	tell(r.handler, key, c)
}

// metadataOf shows a handler that asked for metadata no more than that of a change. What was one object stays one.
func (r *registration) metadataOf(c change) (old, obj any) {
	old = r.metadata(c.old)
	if c.old == c.new {
		return old, old
	}
	return old, r.metadata(c.new)
}

func (r *registration) metadata(obj any) any {
	if obj == nil {
		return nil
	}
	m, err := metadataOf(obj.(runtime.Object), r.entry.gvk)
	if err != nil {
		return obj // it has no metadata, and would not be stored
	}
	return m
}

// filled tells the registration that the stores are filled. The caller holds deliverMu.
func (r *registration) filled() {
	if r.hand != nil {
		r.hand.filled()
		return
	}
	r.once.Do(func() { close(r.synced) })
}

// close ends the delivery; it does not wait for a running handler.
func (r *registration) close() {
	r.removed.Store(true)
	if r.hand != nil {
		r.hand.close()
	}
	if r.resync != nil {
		r.resync.Stop()
	}
}

// remove takes a handler out of the entry.
func (e *entry) remove(r *registration) {
	e.deliverMu.Lock()
	defer e.deliverMu.Unlock()
	for i, other := range e.handlers {
		if other == r {
			e.handlers = append(append([]*registration(nil), e.handlers[:i]...), e.handlers[i+1:]...)
			break
		}
	}
	r.close()
}

// scheduleResync arms the handler's own resync, if it has one. The caller holds deliverMu.
func (r *registration) scheduleResync() {
	if r.period <= 0 {
		return
	}
	r.resync = time.AfterFunc(r.entry.cache.spread(r.period), func() {
		r.entry.deliverMu.Lock()
		defer r.entry.deliverMu.Unlock()
		if r.removed.Load() {
			return
		}
		if s, full := r.entry.telling(r.form); full {
			for _, p := range s.parts {
				p.resyncTo(r)
			}
		}
		r.scheduleResync()
	})
}

// resyncTo tells a handler of every object again. The caller holds deliverMu.
func (p *part) resyncTo(r *registration) {
	for _, it := range p.store.snapshot() {
		r.send(it.key, change{old: it.obj, new: it.obj, resync: true})
	}
}

// keep resyncs a part's handlers and looks after its overlay until ctx is done.
func (p *part) keep(ctx context.Context) {
	e := p.set.entry
	resync, age := idleTimer(), idleTimer()
	defer resync.Stop()
	defer age.Stop()
	if p.scope.syncPeriod > 0 && e.cache.newInformer == nil { // else the program's informer resyncs
		resync.Reset(e.cache.spread(p.scope.syncPeriod))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-resync.C:
			p.resyncAll()
			resync.Reset(e.cache.spread(p.scope.syncPeriod))
		case <-p.overlay.woken:
			age.Reset(overlayAge)
		case <-age.C:
			if again := p.lookAfterOverlay(); again > 0 {
				age.Reset(again)
			}
		}
	}
}

// idleTimer returns a timer that does not run.
func idleTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (p *part) resyncAll() {
	e := p.set.entry
	e.deliverMu.Lock()
	defer e.deliverMu.Unlock()
	for _, r := range e.handlers {
		if s, full := e.telling(r.form); r.period < 0 && s == p.set && full {
			p.resyncTo(r)
		}
	}
}

// HasSynced reports whether the handler has seen everything that was there first.
func (r *registration) HasSynced() bool { return toolscache.IsDone(r.HasSyncedChecker()) }

// HasSyncedChecker tells when the handler has seen everything that was there first.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker {
	done := r.synced
	if r.hand != nil {
		done = r.hand.synced
	}
	return checker{fmt.Sprintf("handler %T of %s", r.handler, r.entry.gvk), done}
}

// checker is a DoneChecker over a channel.
type checker struct {
	name string
	done <-chan struct{}
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }

// informer is the face of an entry for those who asked in one form.
type informer struct {
	entry *entry
	form  apiutil.Form
}

var (
	_ cacheapi.Informer      = (*informer)(nil)
	_ cacheapi.ErrorReporter = (*informer)(nil)
)

// AddEventHandler adds a handler that is resynced as the options of the cache tell.
func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler with a resync period of its own.
func (i *informer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions adds a handler.
func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, opts toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	r, err := i.entry.add(h, i.form, opts.ResyncPeriod)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// RemoveEventHandler removes a handler of this informer.
func (i *informer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok || r.entry != i.entry {
		return fmt.Errorf("the handler was not added to this informer of %s", i.entry.gvk)
	}
	i.entry.remove(r)
	return nil
}

// AddIndexers adds indexes over the stored objects.
func (i *informer) AddIndexers(indexers toolscache.Indexers) error {
	return i.entry.addIndexers(indexers)
}

// HasSynced reports whether the informer was filled once.
func (i *informer) HasSynced() bool { return toolscache.IsDone(i.HasSyncedChecker()) }

// HasSyncedChecker tells when the informer is filled for the first time.
func (i *informer) HasSyncedChecker() toolscache.DoneChecker {
	return checker{"informer of " + i.entry.gvk.String(), i.entry.filled[i.form]}
}

// IsStopped reports whether the informer has ended.
func (i *informer) IsStopped() bool {
	i.entry.mu.Lock()
	defer i.entry.mu.Unlock()
	return i.entry.stopped
}

// LastError returns why the informer is not filled or not up to date.
func (i *informer) LastError() error { return i.entry.lastError() }
