// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/fault"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// delivery carries the events of one run through predicates and handler into
// the queue. It is what an informer knows as an event handler. What a user
// wrote is contained when it is made; what is ours is called as it is.
type delivery[object any, request comparable] struct {
	ctx        context.Context
	source     string
	predicates []predicate.TypedPredicate[object]
	handler    handler.TypedEventHandler[object, request]
	assert     func(any) (object, bool)
	queue      workqueue.TypedRateLimitingInterface[request]
	traced     *priorityqueue.Traced[request]          // queue, if it remembers causes
	direct     func(object, priorityqueue.Event, bool) // queues as the handler would, sooner; nil if there is no such way
	inline     bool                                    // whether nothing here is a user's
}

var _ toolscache.ResourceEventHandler = (*delivery[client.Object, int])(nil)

func deliver[object any, request comparable](
	ctx context.Context,
	source string,
	h handler.TypedEventHandler[object, request],
	predicates []predicate.TypedPredicate[object],
	queue workqueue.TypedRateLimitingInterface[request],
) *delivery[object, request] {
	d := &delivery[object, request]{ctx: ctx, source: source, handler: h, queue: queue, inline: handler.Inline(h), assert: asserter[object]()}
	c := container{source: source, faults: fault.FromContext(ctx)}
	if !d.inline {
		d.handler = containedHandler[object, request]{h, c}
	}
	for _, p := range predicates {
		if !predicate.Inline(p) {
			d.inline = false
			p = containedPredicate[object]{p, c}
		}
		d.predicates = append(d.predicates, p)
	}
	if causal, ok := queue.(priorityqueue.Causal[request]); ok {
		d.traced = priorityqueue.Trace(causal, d.inline)
		d.queue = d.traced
		if _, plain := any(h).(*handler.EnqueueRequestForObject); plain {
			d.direct, _ = any(directly(source, d.traced)).(func(object, priorityqueue.Event, bool))
		}
	}
	return d
}

// directly returns what queues an event's object under its own name, with
// LowPriority if low, as handler.EnqueueRequestForObject does. That handler is
// most of all there are, and the name it asks for is the one that the cause
// keeps. It is nil for keys of another type.
func directly[request comparable](source string, queue *priorityqueue.Traced[request]) func(o client.Object, e priorityqueue.Event, low bool) {
	q, ok := any(queue).(*priorityqueue.Traced[reconcile.Request])
	if !ok {
		return nil
	}
	priority := handler.LowPriority
	lowered := priorityqueue.AddOpts{Priority: &priority}
	return func(o client.Object, e priorityqueue.Event, low bool) {
		name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		q.Because(source, e, name)
		if low {
			q.AddWithOpts(lowered, reconcile.Request{NamespacedName: name})
			return
		}
		q.Add(reconcile.Request{NamespacedName: name})
	}
}

// Inline tells the cache whether it may deliver while it changes its store:
// only if nothing here calls a user's function.
func (d *delivery[object, request]) Inline() bool { return d.inline }

// OnAdd implements ResourceEventHandler.
func (d *delivery[object, request]) OnAdd(obj any, isInInitialList bool) {
	o, ok := d.typed(obj)
	if !ok {
		return
	}
	e := event.TypedCreateEvent[object]{Object: o, IsInInitialList: isInInitialList}
	for _, p := range d.predicates {
		if !p.Create(e) {
			return
		}
	}
	why := priorityqueue.Created
	if isInInitialList {
		why = priorityqueue.Initial
	}
	if d.direct != nil {
		d.direct(o, why, isInInitialList)
		return
	}
	d.because(why, obj)
	d.handler.Create(d.ctx, e, d.queue)
}

// OnUpdate implements ResourceEventHandler.
func (d *delivery[object, request]) OnUpdate(oldObj, newObj any) {
	before, ok := d.typed(oldObj)
	if !ok {
		return
	}
	after, ok := d.typed(newObj)
	if !ok {
		return
	}
	e := event.TypedUpdateEvent[object]{ObjectOld: before, ObjectNew: after}
	for _, p := range d.predicates {
		if !p.Update(e) {
			return
		}
	}
	why := priorityqueue.Updated
	if sameVersion(oldObj, newObj) {
		why = priorityqueue.Resynced
	}
	if d.direct != nil {
		d.direct(after, why, why == priorityqueue.Resynced)
		return
	}
	d.because(why, newObj)
	d.handler.Update(d.ctx, e, d.queue)
}

// OnDelete implements ResourceEventHandler.
func (d *delivery[object, request]) OnDelete(obj any) {
	e := event.TypedDeleteEvent[object]{}
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		e.DeleteStateUnknown = true
		obj = tombstone.Obj
	}
	o, ok := d.typed(obj)
	if !ok {
		return
	}
	e.Object = o
	for _, p := range d.predicates {
		if !p.Delete(e) {
			return
		}
	}
	if d.direct != nil {
		d.direct(o, priorityqueue.Deleted, false)
		return
	}
	d.because(priorityqueue.Deleted, obj)
	d.handler.Delete(d.ctx, e, d.queue)
}

// generic delivers an event of a channel.
func (d *delivery[object, request]) generic(e event.TypedGenericEvent[object]) {
	for _, p := range d.predicates {
		if !p.Generic(e) {
			return
		}
	}
	d.because(priorityqueue.Generic, e.Object)
	d.handler.Generic(d.ctx, e, d.queue)
}

// asserter returns the assertion that an object is of the source's type. For
// client.Object, which is almost always, it is one that the compiler speeds up:
// those to type parameters it does not.
func asserter[object any]() func(any) (object, bool) {
	if a, ok := any(assertObject).(func(any) (object, bool)); ok {
		return a
	}
	return func(obj any) (object, bool) {
		o, ok := obj.(object)
		return o, ok
	}
}

func assertObject(obj any) (client.Object, bool) {
	o, ok := obj.(client.Object)
	return o, ok
}

// typed asserts the object's type; an informer that holds another one is a
// mistake in how the source was made.
func (d *delivery[object, request]) typed(obj any) (object, bool) {
	o, ok := d.assert(obj)
	if !ok {
		log.FromContext(d.ctx).Error(nil, "Ignored an event with an object of another type", "source", d.source, "type", fmt.Sprintf("%T", obj))
	}
	return o, ok
}

func (d *delivery[object, request]) because(e priorityqueue.Event, obj any) {
	if d.traced != nil {
		d.traced.Because(d.source, e, nameOf(obj))
	}
}

func nameOf(obj any) types.NamespacedName {
	if o, ok := obj.(client.Object); ok && o != nil {
		return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	}
	return types.NamespacedName{}
}

func sameVersion(before, after any) bool {
	b, ok := before.(client.Object)
	if !ok {
		return false
	}
	a, ok := after.(client.Object)
	return ok && a.GetResourceVersion() == b.GetResourceVersion()
}
