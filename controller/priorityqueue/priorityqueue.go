// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/controller/fault"
	"github.com/wherry-dev/wherry/manager/metrics"
)

// AddOpts tells how keys are added. The zero value adds them ready, with
// priority 0.
type AddOpts struct {
	// After delays the keys. Zero or less means they are ready at once.
	After time.Duration

	// RateLimited asks the queue's rate limiter for a delay. With After set
	// as well the shorter delay counts.
	RateLimited bool

	// Priority of the keys; nil means 0. Higher goes first.
	Priority *int
}

// PriorityQueue is a rate-limited work queue with priorities.
//
// All methods are safe for concurrent use. Only Get, GetWithPriority and
// ShutDownWithDrain block.
type PriorityQueue[T comparable] interface {
	workqueue.TypedRateLimitingInterface[T]

	// AddWithOpts adds keys as told by o. A key that is queued already keeps
	// the higher priority and the earlier due time.
	AddWithOpts(o AddOpts, items ...T)

	// GetWithPriority is Get, and tells the key's priority too.
	GetWithPriority() (item T, priority int, shutdown bool)
}

// Opts are the settings of a queue; New fills in what is not set.
type Opts[T comparable] struct {
	// RateLimiter gives the delay of rate-limited adds. It is called without
	// the queue's lock, by the goroutine that adds. Defaults to one that
	// starts at 5 ms, doubles with each failure of a key, and ends at 1000 s.
	RateLimiter workqueue.TypedRateLimiter[T]

	// MetricProvider makes the queue's metrics. Defaults to the workqueue_*
	// metrics of manager/metrics.Registry.
	MetricProvider workqueue.MetricsProvider

	// Log gets the rare line about a misbehaving rate limiter. The zero value
	// drops it.
	Log logr.Logger
}

// Opt changes the settings of a queue.
type Opt[T comparable] func(*Opts[T])

const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 1000 * time.Second
)

// New makes a running queue. The name is the value of the metrics' labels
// "name" and "controller"; with an empty name the queue has no metrics.
func New[T comparable](name string, o ...Opt[T]) PriorityQueue[T] {
	opts := Opts[T]{}
	for _, apply := range o {
		if apply != nil {
			apply(&opts)
		}
	}
	if opts.RateLimiter == nil {
		opts.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetry, lastRetry)
	}
	if opts.MetricProvider == nil {
		opts.MetricProvider = metrics.WorkqueueMetricsProvider{}
	}
	return newQueue(opts.RateLimiter, newMeter(name, opts.MetricProvider), fault.NewKeeper(name, opts.Log))
}
