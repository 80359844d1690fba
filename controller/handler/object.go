// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// EnqueueRequestForObject queues the event's object itself: its namespace and
// name.
type EnqueueRequestForObject = TypedEnqueueRequestForObject[client.Object]

// TypedEnqueueRequestForObject is EnqueueRequestForObject for one type.
type TypedEnqueueRequestForObject[object client.Object] struct{}

var _ EventHandler = &EnqueueRequestForObject{}

// Create implements TypedEventHandler.
func (*TypedEnqueueRequestForObject[T]) Create(ctx context.Context, e event.TypedCreateEvent[T], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if apiutil.IsNil(e.Object) {
		withoutObject(ctx, "create")
		return
	}
	enqueue(q, e.IsInInitialList, requestFor(e.Object))
}

// Update implements TypedEventHandler.
func (*TypedEnqueueRequestForObject[T]) Update(ctx context.Context, e event.TypedUpdateEvent[T], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	switch {
	case !apiutil.IsNil(e.ObjectNew):
		enqueue(q, unchanged(e), requestFor(e.ObjectNew))
	case !apiutil.IsNil(e.ObjectOld):
		enqueue(q, false, requestFor(e.ObjectOld))
	default:
		withoutObject(ctx, "update")
	}
}

// Delete implements TypedEventHandler.
func (*TypedEnqueueRequestForObject[T]) Delete(ctx context.Context, e event.TypedDeleteEvent[T], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if apiutil.IsNil(e.Object) {
		withoutObject(ctx, "delete")
		return
	}
	q.Add(requestFor(e.Object))
}

// Generic implements TypedEventHandler.
func (*TypedEnqueueRequestForObject[T]) Generic(ctx context.Context, e event.TypedGenericEvent[T], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if apiutil.IsNil(e.Object) {
		withoutObject(ctx, "generic")
		return
	}
	q.Add(requestFor(e.Object))
}

func (*TypedEnqueueRequestForObject[T]) inline() bool { return true }

func requestFor(obj client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

func withoutObject(ctx context.Context, kind string) {
	log.FromContext(ctx).Error(nil, "Ignored an event without an object", "event", kind)
}
