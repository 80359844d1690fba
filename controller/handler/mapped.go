// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"context"
	"slices"

	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// MapFunc names the requests that an object concerns.
type MapFunc = TypedMapFunc[client.Object, reconcile.Request]

// TypedMapFunc names the keys that an object concerns. It must not change the
// object. While it runs, the events of its source wait, so it should read from
// the cache only.
type TypedMapFunc[object any, request comparable] func(context.Context, object) []request

// EnqueueRequestsFromMapFunc queues what fn names for the event's object. For
// an update fn is asked for the old and for the new object, so that those who
// are not concerned any more are told too; a key named twice for one event is
// queued once.
func EnqueueRequestsFromMapFunc(fn MapFunc) EventHandler {
	return TypedEnqueueRequestsFromMapFunc(fn)
}

// TypedEnqueueRequestsFromMapFunc is EnqueueRequestsFromMapFunc for other
// types.
func TypedEnqueueRequestsFromMapFunc[object any, request comparable](fn TypedMapFunc[object, request]) TypedEventHandler[object, request] {
	return &mapped[object, request]{fn: fn}
}

type mapped[object any, request comparable] struct {
	fn TypedMapFunc[object, request]
}

func (m *mapped[object, request]) Create(ctx context.Context, e event.TypedCreateEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	enqueueAll(q, e.IsInInitialList, m.fn(ctx, e.Object))
}

func (m *mapped[object, request]) Update(ctx context.Context, e event.TypedUpdateEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	before := m.fn(ctx, e.ObjectOld)
	enqueueAll(q, unchanged(e), slices.Concat(before, m.fn(ctx, e.ObjectNew)))
}

func (m *mapped[object, request]) Delete(ctx context.Context, e event.TypedDeleteEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	enqueueAll(q, false, m.fn(ctx, e.Object))
}

func (m *mapped[object, request]) Generic(ctx context.Context, e event.TypedGenericEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	enqueueAll(q, false, m.fn(ctx, e.Object))
}

// enqueueAll adds each key once, in order.
func enqueueAll[request comparable](q workqueue.TypedRateLimitingInterface[request], low bool, reqs []request) {
	reqs = distinct(reqs)
	if len(reqs) == 0 {
		return
	}
	if pq, ok := q.(priorityqueue.PriorityQueue[request]); ok && low {
		pq.AddWithOpts(priorityqueue.AddOpts{Priority: &lowPriority}, reqs...)
		return
	}
	for _, req := range reqs {
		q.Add(req)
	}
}

// fewKeys is up to how many keys comparing each with each beats a map.
const fewKeys = 16

// distinct drops repeated keys. It does not touch the slice it was given.
func distinct[request comparable](reqs []request) []request {
	if len(reqs) < 2 {
		return reqs
	}
	kept := make([]request, 0, len(reqs))
	if len(reqs) <= fewKeys {
		for _, req := range reqs {
			if !slices.Contains(kept, req) {
				kept = append(kept, req)
			}
		}
		return kept
	}
	seen := make(map[request]struct{}, len(reqs))
	for _, req := range reqs {
		if _, ok := seen[req]; !ok {
			seen[req] = struct{}{}
			kept = append(kept, req)
		}
	}
	return kept
}
