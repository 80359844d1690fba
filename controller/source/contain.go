// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/fault"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
)

// container keeps panics of a user's code from ending the process.
type container struct {
	source string
	faults *fault.Keeper
}

// predicatePanic is deferred around a predicate. One that panics lets the
// event through: one reconcile too many does no harm, one too few may.
func (c container) predicatePanic(obj any, pass *bool) {
	if r := recover(); r != nil {
		c.faults.Note(fault.Predicate, nameOf(obj), fmt.Errorf("%s: predicate panicked: %v", c.source, r))
		*pass = true
	}
}

// handlerPanic is deferred around a handler.
func (c container) handlerPanic(obj any) {
	if r := recover(); r != nil {
		c.faults.Note(fault.Handler, nameOf(obj), fmt.Errorf("%s: event handler panicked: %v", c.source, r))
	}
}

// containedPredicate is a user's predicate.
type containedPredicate[object any] struct {
	user predicate.TypedPredicate[object]
	container
}

func (c containedPredicate[object]) Create(e event.TypedCreateEvent[object]) (pass bool) {
	defer c.predicatePanic(e.Object, &pass)
	return c.user.Create(e)
}

func (c containedPredicate[object]) Update(e event.TypedUpdateEvent[object]) (pass bool) {
	defer c.predicatePanic(e.ObjectNew, &pass)
	return c.user.Update(e)
}

func (c containedPredicate[object]) Delete(e event.TypedDeleteEvent[object]) (pass bool) {
	defer c.predicatePanic(e.Object, &pass)
	return c.user.Delete(e)
}

func (c containedPredicate[object]) Generic(e event.TypedGenericEvent[object]) (pass bool) {
	defer c.predicatePanic(e.Object, &pass)
	return c.user.Generic(e)
}

// containedHandler is a user's handler, or one of ours that calls a user's
// function.
type containedHandler[object any, request comparable] struct {
	user handler.TypedEventHandler[object, request]
	container
}

func (c containedHandler[object, request]) Create(ctx context.Context, e event.TypedCreateEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	defer c.handlerPanic(e.Object)
	c.user.Create(ctx, e, q)
}

func (c containedHandler[object, request]) Update(ctx context.Context, e event.TypedUpdateEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	defer c.handlerPanic(e.ObjectNew)
	c.user.Update(ctx, e, q)
}

func (c containedHandler[object, request]) Delete(ctx context.Context, e event.TypedDeleteEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	defer c.handlerPanic(e.Object)
	c.user.Delete(ctx, e, q)
}

func (c containedHandler[object, request]) Generic(ctx context.Context, e event.TypedGenericEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	defer c.handlerPanic(e.Object)
	c.user.Generic(ctx, e, q)
}
