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
	next  func(priorityqueue.Taken[request]) (priorityqueue.Taken[request], bool) // done, then take
	again func(priorityqueue.AddOpts, priorityqueue.Cause, request)
}

func newIntake[request comparable](q workqueue.TypedRateLimitingInterface[request]) intake[request] {
	if causal, ok := q.(priorityqueue.Causal[request]); ok {
		return intake[request]{take: causal.Take, done: causal.Finish, next: causal.Next, again: causal.AddWithCause}
	}
	in := intake[request]{done: func(t priorityqueue.Taken[request]) { q.Done(t.Key) }}
	if by, ok := q.(priorityqueue.PriorityQueue[request]); ok {
		in.take = func() (priorityqueue.Taken[request], bool) {
			key, priority, shutdown := by.GetWithPriority()
			return priorityqueue.Taken[request]{Key: key, Priority: priority}, shutdown
		}
		in.again = func(o priorityqueue.AddOpts, _ priorityqueue.Cause, key request) { by.AddWithOpts(o, key) }
	} else {
		in.take = func() (priorityqueue.Taken[request], bool) {
			key, shutdown := q.Get()
			return priorityqueue.Taken[request]{Key: key}, shutdown
		}
		in.again = func(o priorityqueue.AddOpts, _ priorityqueue.Cause, key request) {
			if o.RateLimited {
				q.AddRateLimited(key)
				return
			}
			q.AddAfter(key, o.After)
		}
	}
	in.next = func(last priorityqueue.Taken[request]) (priorityqueue.Taken[request], bool) {
		in.done(last)
		return in.take()
	}
	return in
}

// worker reconciles one key after the other until the queue is shut down.
func (c *controller[request]) worker(ctx context.Context, t *term[request]) {
	taken, shutdown := t.intake.take()
	var last *turn[request]
	defer func() {
		if shutdown {
			return
		}
		if r := recover(); r != nil { // it was not to be recovered: the process ends
			panic(r)
		}
		c.conclude(t, last, ending{ctx: ctx, err: errExited})
		t.intake.done(taken)
		t.workers.Go(func() { c.worker(ctx, t) })
	}()
	for !shutdown {
		last = c.newTurn(ctx, taken)
		c.work(t, last)
		taken, shutdown = t.intake.next(taken)
	}
}

// errExited is what a reconcile failed with that did not come back. Without a
// worker in its place a controller with one would never reconcile again, and
// not say a word.
var errExited = errors.New("the reconciler ended its goroutine (runtime.Goexit, which Fatal and FailNow of a test call); return an error instead")

// work reconciles the key of a turn.
func (c *controller[request]) work(t *term[request], turn *turn[request]) {
	c.metrics.active.Inc()
	defer c.metrics.active.Dec()

	began := time.Now()
	result, err, panicked := c.reconcile(turn, turn.taken.Key)
	c.metrics.duration.Observe(time.Since(began).Seconds())
	c.conclude(t, turn, ending{ctx: turn.Context, result: result, err: err, panicked: panicked})
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
	logger := c.log
	if e.err != nil || logger.V(5).Enabled() {
		logger = turn.log()
	}
	c.outcomes.of(e).apply(e, c.metrics, logger,
		func() { t.queue.Forget(key) },
		func(opts priorityqueue.AddOpts, why priorityqueue.Event) {
			t.intake.again(opts, priorityqueue.Cause{Source: "reconciler", Event: why}, key)
		})
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
