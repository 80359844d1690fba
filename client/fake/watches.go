// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherry-dev/wherry/client"
)

// maxHistory bounds how many changes of a resource are kept for watches that go on from a version.
const maxHistory = 1000

// change is one change of an object: what it was, nil if new, and what it is or, if deleted, was last.
type change struct {
	event  watch.EventType
	before client.Object
	after  client.Object
}

// watches are the open watches of all resources and what they may ask for.
type watches struct {
	mu      sync.Mutex
	open    map[schema.GroupVersionResource][]*subscription // guarded by mu
	history map[schema.GroupVersionResource][]change        // guarded by mu; only with one counter for all
	keep    bool
}

// subscription is one watch and what it wants to see.
type subscription struct {
	*watcher
	s     *selection
	shape func(client.Object) (runtime.Object, error)
}

// tell hands a change to all who watch. The engine's lock is held, so all see the same order.
func (ws *watches) tell(k *kind, c change) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.keep {
		kept := append(ws.history[k.gvr], c)
		if len(kept) > maxHistory {
			kept = slices.Delete(kept, 0, len(kept)-maxHistory)
		}
		ws.history[k.gvr] = kept
	}
	for _, sub := range ws.open[k.gvr] {
		sub.tell(c)
	}
}

// tell sends the change as the watch sees it: an object that comes to match is added, one that ceases to is deleted, with
// its last matching content and the version of the change.
func (sub *subscription) tell(c change) {
	was := c.before != nil && sub.s.matches(c.before)
	is := c.event != watch.Deleted && sub.s.matches(c.after)
	switch {
	case is && was:
		sub.emit(watch.Modified, c.after)
	case is:
		sub.emit(watch.Added, c.after)
	case was && c.event == watch.Deleted:
		sub.emit(watch.Deleted, c.after)
	case was:
		last := c.before.DeepCopyObject().(client.Object)
		last.SetResourceVersion(c.after.GetResourceVersion())
		last.SetManagedFields(nil)
		sub.emit(watch.Deleted, last)
	}
}

func (sub *subscription) emit(event watch.EventType, obj client.Object) {
	shaped, err := sub.shape(obj)
	if err != nil {
		status := apierrors.NewInternalError(err).Status()
		sub.send(watch.Event{Type: watch.Error, Object: &status})
		return
	}
	sub.send(watch.Event{Type: event, Object: shaped})
}

// close takes a watch off the list.
func (ws *watches) close(k *kind, w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.open[k.gvr] = slices.DeleteFunc(ws.open[k.gvr], func(s *subscription) bool { return s.watcher == w })
}

// watch opens a watch.
func (e *engine) watch(ctx context.Context, k *kind, s *selection, opts *metav1.ListOptions,
	shape func(client.Object) (runtime.Object, error)) (watch.Interface, error) {
	if own, ok := e.rows.(interface {
		watch(context.Context, *kind, *subscription) (watch.Interface, error)
	}); ok {
		return own.watch(ctx, k, &subscription{s: s, shape: shape})
	}
	e.mu.Lock() // nothing may change between what is there now and what is told from now on
	defer e.mu.Unlock()
	sub := &subscription{s: s, shape: shape}
	sub.watcher = newWatcher(ctx, func(w *watcher) { e.watches.close(k, w) })
	if err := e.begin(k, sub, opts); err != nil {
		sub.Stop()
		return nil, err
	}
	e.watches.mu.Lock()
	defer e.watches.mu.Unlock()
	e.watches.open[k.gvr] = append(e.watches.open[k.gvr], sub)
	return sub.watcher, nil
}

// begin sends what a new watch is told of the past.
func (e *engine) begin(k *kind, sub *subscription, opts *metav1.ListOptions) error {
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	switch {
	case initial && opts.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan:
		return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", nil)
	case initial, (opts.ResourceVersion == "" || opts.ResourceVersion == "0") && e.behaviour.has(InitialEvents):
		return e.beginWithAll(k, sub, initial && opts.AllowWatchBookmarks)
	case opts.ResourceVersion == "" || opts.ResourceVersion == "0" || !e.versions.global:
		return nil
	}
	from, err := strconv.ParseUint(opts.ResourceVersion, 10, 64)
	if err != nil {
		return apierrors.NewBadRequest("invalid resource version " + opts.ResourceVersion)
	}
	e.watches.mu.Lock()
	defer e.watches.mu.Unlock()
	kept := e.watches.history[k.gvr]
	if len(kept) == maxHistory && versionOf(kept[0].after) > from+1 {
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, versionOf(kept[0].after)))
	}
	for _, c := range kept {
		if versionOf(c.after) > from {
			sub.tell(c)
		}
	}
	return nil
}

func (e *engine) beginWithAll(k *kind, sub *subscription, bookmark bool) error {
	records, err := e.rows.all(k, sub.s.namespace)
	if err != nil {
		return err
	}
	for _, r := range records {
		if sub.s.matches(r.obj) {
			sub.emit(watch.Added, e.visible(r.obj))
		}
	}
	if !bookmark {
		return nil
	}
	mark, err := e.newStored(k)
	if err != nil {
		return err
	}
	mark.SetResourceVersion(strconv.FormatUint(e.versions.current, 10))
	mark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	sub.emit(watch.Bookmark, mark)
	return nil
}

func versionOf(obj client.Object) uint64 {
	n, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	return n
}
