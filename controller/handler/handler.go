// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// EventHandler queues requests for events of objects of any API kind.
type EventHandler = TypedEventHandler[client.Object, reconcile.Request]

// TypedEventHandler queues keys for events. It must not change the objects.
// It should not block: the events of its source wait meanwhile. The context
// ends when the controller stops.
type TypedEventHandler[object any, request comparable] interface {
	Create(context.Context, event.TypedCreateEvent[object], workqueue.TypedRateLimitingInterface[request])
	Update(context.Context, event.TypedUpdateEvent[object], workqueue.TypedRateLimitingInterface[request])
	Delete(context.Context, event.TypedDeleteEvent[object], workqueue.TypedRateLimitingInterface[request])
	Generic(context.Context, event.TypedGenericEvent[object], workqueue.TypedRateLimitingInterface[request])
}

// Funcs is an EventHandler made of functions.
type Funcs = TypedFuncs[client.Object, reconcile.Request]

// TypedFuncs is a TypedEventHandler made of functions. A nil function ignores
// the events of its kind. What a function adds for an object of the initial
// list or for a resync has LowPriority unless it sets one itself.
type TypedFuncs[object any, request comparable] struct {
	CreateFunc  func(context.Context, event.TypedCreateEvent[object], workqueue.TypedRateLimitingInterface[request])
	UpdateFunc  func(context.Context, event.TypedUpdateEvent[object], workqueue.TypedRateLimitingInterface[request])
	DeleteFunc  func(context.Context, event.TypedDeleteEvent[object], workqueue.TypedRateLimitingInterface[request])
	GenericFunc func(context.Context, event.TypedGenericEvent[object], workqueue.TypedRateLimitingInterface[request])
}

var _ EventHandler = Funcs{}

// Create implements TypedEventHandler.
func (h TypedFuncs[object, request]) Create(ctx context.Context, e event.TypedCreateEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	if h.CreateFunc != nil {
		h.CreateFunc(ctx, e, lowered(q, e.IsInInitialList))
	}
}

// Update implements TypedEventHandler.
func (h TypedFuncs[object, request]) Update(ctx context.Context, e event.TypedUpdateEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	if h.UpdateFunc != nil {
		h.UpdateFunc(ctx, e, lowered(q, unchanged(e)))
	}
}

// Delete implements TypedEventHandler.
func (h TypedFuncs[object, request]) Delete(ctx context.Context, e event.TypedDeleteEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	if h.DeleteFunc != nil {
		h.DeleteFunc(ctx, e, q)
	}
}

// Generic implements TypedEventHandler.
func (h TypedFuncs[object, request]) Generic(ctx context.Context, e event.TypedGenericEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	if h.GenericFunc != nil {
		h.GenericFunc(ctx, e, q)
	}
}

func (h TypedFuncs[object, request]) inline() bool {
	return h.CreateFunc == nil && h.UpdateFunc == nil && h.DeleteFunc == nil && h.GenericFunc == nil
}

// LowPriority is the priority of keys that were queued although, as far as
// one can tell, nothing happened: the initial list, and resyncs.
const LowPriority = -100

var lowPriority = LowPriority

// WithLowPriorityWhenUnchanged makes a handler add with LowPriority for
// objects of the initial list and for resyncs, unless it sets a priority
// itself. The handlers of this package do so already.
func WithLowPriorityWhenUnchanged[object client.Object, request comparable](u TypedEventHandler[object, request]) TypedEventHandler[object, request] {
	return lowWhenUnchanged[object, request]{u}
}

type lowWhenUnchanged[object client.Object, request comparable] struct {
	TypedEventHandler[object, request]
}

func (h lowWhenUnchanged[object, request]) Create(ctx context.Context, e event.TypedCreateEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	h.TypedEventHandler.Create(ctx, e, lowered(q, e.IsInInitialList))
}

func (h lowWhenUnchanged[object, request]) Update(ctx context.Context, e event.TypedUpdateEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	h.TypedEventHandler.Update(ctx, e, lowered(q, unchanged(e)))
}

func (h lowWhenUnchanged[object, request]) inline() bool   { return Inline(h.TypedEventHandler) }
func (h lowWhenUnchanged[object, request]) prepare() error { return Prepare(h.TypedEventHandler) }
func (h lowWhenUnchanged[object, request]) validate() error {
	return Validate(h.TypedEventHandler)
}

// unchanged tells whether an update is a resync.
func unchanged[object any](e event.TypedUpdateEvent[object]) bool {
	before, ok := any(e.ObjectOld).(client.Object)
	if !ok || apiutil.IsNil(before) {
		return false
	}
	after, ok := any(e.ObjectNew).(client.Object)
	return ok && !apiutil.IsNil(after) && before.GetResourceVersion() == after.GetResourceVersion()
}

// enqueue adds one key, with LowPriority if low and the queue knows
// priorities.
func enqueue[request comparable](q workqueue.TypedRateLimitingInterface[request], low bool, req request) {
	if low {
		if pq, ok := q.(priorityqueue.PriorityQueue[request]); ok {
			pq.AddWithOpts(priorityqueue.AddOpts{Priority: &lowPriority}, req)
			return
		}
	}
	q.Add(req)
}

// lowered returns q, with LowPriority as its default if low and if it knows
// priorities.
func lowered[request comparable](q workqueue.TypedRateLimitingInterface[request], low bool) workqueue.TypedRateLimitingInterface[request] {
	if low {
		if pq, ok := q.(priorityqueue.PriorityQueue[request]); ok {
			return lowQueue[request]{pq}
		}
	}
	return q
}

// lowQueue is a face of a queue whose default priority is LowPriority.
type lowQueue[request comparable] struct {
	priorityqueue.PriorityQueue[request]
}

func (q lowQueue[request]) Add(item request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, item)
}

func (q lowQueue[request]) AddAfter(item request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, item)
}

func (q lowQueue[request]) AddRateLimited(item request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

func (q lowQueue[request]) AddWithOpts(o priorityqueue.AddOpts, items ...request) {
	if o.Priority == nil {
		o.Priority = &lowPriority
	}
	q.PriorityQueue.AddWithOpts(o, items...)
}
