// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
)

// turn is one reconcile of one key. It is the reconcile's context, and keeps
// what the context offers until somebody asks: a logger, an ID and the causes.
type turn[request comparable] struct {
	context.Context
	options *TypedOptions[request]
	base    logr.Logger // the controller's logger
	taken   priorityqueue.Taken[request]

	once   sync.Once
	logger any // a logr.Logger, boxed once
	idOnce sync.Once
	id     types.UID
}

func (c *controller[request]) newTurn(ctx context.Context, taken priorityqueue.Taken[request]) *turn[request] {
	return &turn[request]{Context: ctx, options: &c.options, base: c.log, taken: taken}
}

// logKey is looked up once.
var logKey = log.ContextKey()

// turnKey is the key under which a turn finds itself.
type turnKey struct{}

// asTurn is a turn of any request type.
type asTurn interface {
	reconcileID() types.UID
	causes() ([]priorityqueue.Cause, int)
}

// Value implements context.Context.
func (t *turn[request]) Value(key any) any {
	switch key {
	case logKey:
		t.once.Do(func() { t.logger = logr.New(&lazySink{root: t}).V(0) })
		return t.logger
	case turnKey{}:
		return asTurn(t)
	}
	return t.Context.Value(key)
}

func (t *turn[request]) reconcileID() types.UID {
	t.idOnce.Do(func() { t.id = uuid.NewUUID() })
	return t.id
}

func (t *turn[request]) causes() ([]priorityqueue.Cause, int) { return t.taken.Causes() }

// log is the turn's logger, for those who are about to use it.
func (t *turn[request]) log() logr.Logger { return t.Value(logKey).(logr.Logger) }

// enabled implements logRoot. With a logger that only adds values to the
// controller's the controller's can tell; a constructor may have its own idea
// for each key.
func (t *turn[request]) enabled(level int, real func() logr.LogSink) bool {
	sink, offset := t.base.GetSink(), t.base.GetV()
	if t.options.LogConstructor != nil {
		sink, offset = real(), 0
	}
	return sink != nil && sink.Enabled(level+offset)
}

// logger implements logRoot.
func (t *turn[request]) realLogger() logr.Logger {
	if t.options.LogConstructor != nil {
		return t.options.LogConstructor(&t.taken.Key).WithValues("reconcileID", t.reconcileID())
	}
	return t.base.WithValues(append(t.options.LogValues(&t.taken.Key), "reconcileID", t.reconcileID())...)
}

// ReconcileIDFromContext returns the ID of the reconcile that ctx belongs to,
// or "" if it belongs to none. The same ID is in the reconcile's log lines as
// reconcileID.
var ReconcileIDFromContext = func(ctx context.Context) types.UID {
	if t, ok := ctx.Value(turnKey{}).(asTurn); ok {
		return t.reconcileID()
	}
	return ""
}

// CausesFromContext tells why the key of the reconcile that ctx belongs to was
// queued since it was last reconciled: at most priorityqueue.MaxCauses
// different causes, and how many there were beyond. There are none if the
// queue does not keep them.
func CausesFromContext(ctx context.Context) (causes []priorityqueue.Cause, missed int) {
	if t, ok := ctx.Value(turnKey{}).(asTurn); ok {
		return t.causes()
	}
	return nil, 0
}
