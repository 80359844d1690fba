// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// intake is how workers use a queue, whatever the queue can do.
type intake[request comparable] struct {
	take  func() (priorityqueue.Taken[request], bool)
	done  func(priorityqueue.Taken[request])
	again func(priorityqueue.AddOpts, priorityqueue.Cause, request)
}

func newIntake[request comparable](q workqueue.TypedRateLimitingInterface[request]) intake[request] {
	done := func(t priorityqueue.Taken[request]) { q.Done(t.Key) }
	switch q := q.(type) {
	case priorityqueue.Causal[request]:
		return intake[request]{take: q.Take, done: q.Finish, again: q.AddWithCause}
	case priorityqueue.PriorityQueue[request]:
		return intake[request]{
			done: done,
			take: func() (priorityqueue.Taken[request], bool) {
				key, priority, shutdown := q.GetWithPriority()
				return priorityqueue.Taken[request]{Key: key, Priority: priority}, shutdown
			},
			again: func(o priorityqueue.AddOpts, _ priorityqueue.Cause, key request) { q.AddWithOpts(o, key) },
		}
	default:
		return intake[request]{
			done: done,
			take: func() (priorityqueue.Taken[request], bool) {
				key, shutdown := q.Get()
				return priorityqueue.Taken[request]{Key: key}, shutdown
			},
			again: func(o priorityqueue.AddOpts, _ priorityqueue.Cause, key request) {
				if o.RateLimited {
					q.AddRateLimited(key)
					return
				}
				q.AddAfter(key, o.After)
			},
		}
	}
}

// work takes one key and reconciles it. It returns false when the queue is
// shut down.
func (c *controller[request]) work(ctx context.Context, t *term[request]) bool {
	taken, shutdown := t.intake.take()
	if shutdown {
		return false
	}
	defer t.intake.done(taken)
	c.metrics.active.Inc()
	defer c.metrics.active.Dec()

	turn := &turn[request]{Context: ctx, options: &c.options, base: c.log, taken: taken}
	began := time.Now()
	result, err, panicked := c.reconcile(turn, taken.Key)
	c.metrics.duration.Observe(time.Since(began).Seconds())
	c.conclude(t, turn, ending{ctx: t.ctx, result: result, err: err, panicked: panicked})
	return true
}

// conclude does what the table says follows.
func (c *controller[request]) conclude(t *term[request], turn *turn[request], e ending) {
	key := turn.taken.Key
	if e.err != nil {
		e.conflicts = t.queue.NumRequeues(key)
	}
	if e.err == nil && e.result.RequeueAfter < 0 {
		noteNegative(t.faults, key, e)
	}
	if e.result.Priority == nil {
		e.result.Priority = &turn.taken.Priority
	}
	for i := range c.retries {
		o := &c.retries[i]
		if !o.when(e) {
			continue
		}
		logger := c.log
		if e.err != nil || logger.V(5).Enabled() {
			logger = turn.log()
		}
		o.apply(e, c.metrics, logger,
			func() { t.queue.Forget(key) },
			func(opts priorityqueue.AddOpts, why priorityqueue.Event) {
				t.intake.again(opts, priorityqueue.Cause{Source: "reconciler", Event: why}, key)
			})
		return
	}
}

// Reconcile implements TypedController: it calls the reconciler with the
// controller's timeout and panic recovery, but outside the queue.
func (c *controller[request]) Reconcile(ctx context.Context, req request) (reconcile.Result, error) {
	result, err, _ := c.reconcile(ctx, req)
	return result, err
}

func (c *controller[request]) reconcile(ctx context.Context, req request) (result reconcile.Result, err error, panicked bool) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		c.metrics.panics.Inc()
		if !*c.options.RecoverPanic {
			log.FromContext(ctx).Info("Observed a panic in reconciler", "panic", fmt.Sprint(r))
			panic(r)
		}
		err, panicked = fmt.Errorf("panic: %v [recovered]", r), true
		log.FromContext(ctx).Error(err, "Observed a panic in reconciler", "stack", string(debug.Stack()))
	}()
	if v := c.log.V(5); v.Enabled() {
		log.FromContext(ctx).V(5).Info("Reconciling")
	}
	if c.options.ReconciliationTimeout <= 0 {
		result, err = c.reconciler.Reconcile(ctx, req)
		return result, err, false
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.ReconciliationTimeout, errTimeout)
	defer cancel()
	result, err = c.reconciler.Reconcile(ctx, req)
	if errors.Is(context.Cause(ctx), errTimeout) {
		c.metrics.timedOut()
	}
	return result, err, false
}

// errTimeout is the cause of a context that ended with ReconciliationTimeout.
var errTimeout = errors.New("the controller's ReconciliationTimeout is over")
