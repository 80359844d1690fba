// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/fault"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/manager/config"
	"github.com/wherry-dev/wherry/manager/metrics"
)

// Options are the settings of a Controller.
type Options = TypedOptions[reconcile.Request]

// TypedOptions are the settings of a TypedController. They are settled when
// the controller is made. A setting that is zero or nil comes from the
// manager's config.Controller, if it has one there, and else has the default
// told below.
type TypedOptions[request comparable] struct {
	// SkipNameValidation allows a name that another controller of the manager
	// has; the two then share their metrics. Default false.
	SkipNameValidation *bool

	// MaxConcurrentReconciles is the number of workers. Default 1.
	MaxConcurrentReconciles int

	// CacheSyncTimeout is how long Start waits for each source to start and
	// sync. Default 2 minutes.
	CacheSyncTimeout time.Duration

	// RecoverPanic makes a panic of the reconciler an error of that one key.
	// Default true.
	RecoverPanic *bool

	// NeedLeaderElection lets the controller run only where the manager is the
	// leader. Default true.
	NeedLeaderElection *bool

	// Reconciler does the work. It must be set.
	Reconciler reconcile.TypedReconciler[request]

	// RateLimiter gives the delay of a key that failed. It defaults to one
	// that starts at 5 ms, doubles with each failure in a row, and ends at
	// 1000 s; without the priority queue there is also a limit of 10 a second
	// for all keys together, with a burst of 100.
	RateLimiter workqueue.TypedRateLimiter[request]

	// NewQueue makes the controller's queue, once per Start. Default: what
	// UsePriorityQueue says.
	NewQueue func(controllerName string, rateLimiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request]

	// Logger is the base of the controller's loggers. Default: the manager's.
	Logger logr.Logger

	// LogConstructor makes the logger of the controller (for nil) and of one
	// reconcile. It replaces LogValues. It is called when the reconciler first
	// asks its logger anything, so at most once for each reconcile.
	LogConstructor func(request *request) logr.Logger

	// LogValues lists the keys and values that the logger of the controller
	// (for nil) and of one reconcile adds to Logger. The default is the
	// object's name for requests, and nothing else.
	LogValues func(request *request) []any

	// UsePriorityQueue takes the queue of package priorityqueue. False takes
	// client-go's. Default true.
	UsePriorityQueue *bool

	// EnableWarmup starts the sources and fills the queue before the manager
	// is the leader. Default false.
	EnableWarmup *bool

	// ReconciliationTimeout ends the context of a reconcile that takes longer.
	// Zero or less means never.
	ReconciliationTimeout time.Duration

	// RetryPolicies are asked, in order, before the built-in ones what becomes
	// of a key whose reconcile failed.
	RetryPolicies []RetryPolicy
}

// DefaultFromConfig takes what is not set from a manager's configuration.
func (options *TypedOptions[request]) DefaultFromConfig(c config.Controller) {
	if options.Logger.GetSink() == nil {
		options.Logger = c.Logger
	}
	orDefault(&options.SkipNameValidation, c.SkipNameValidation)
	orDefault(&options.RecoverPanic, c.RecoverPanic)
	orDefault(&options.NeedLeaderElection, c.NeedLeaderElection)
	orDefault(&options.UsePriorityQueue, c.UsePriorityQueue)
	orDefault(&options.EnableWarmup, c.EnableWarmup)
	if options.MaxConcurrentReconciles <= 0 {
		options.MaxConcurrentReconciles = c.MaxConcurrentReconciles
	}
	if options.CacheSyncTimeout == 0 {
		options.CacheSyncTimeout = c.CacheSyncTimeout
	}
	if options.ReconciliationTimeout == 0 {
		options.ReconciliationTimeout = c.ReconciliationTimeout
	}
}

func orDefault(setting **bool, fallback *bool) {
	if *setting == nil {
		*setting = fallback
	}
}

const defaultCacheSyncTimeout = 2 * time.Minute

// settle fills in every default and refuses what cannot work.
func (options *TypedOptions[request]) settle(name string) error {
	if apiutil.IsNil(options.Reconciler) {
		return errors.New("the Reconciler is nil")
	}
	if options.CacheSyncTimeout < 0 {
		return fmt.Errorf("the CacheSyncTimeout %s is negative", options.CacheSyncTimeout)
	}
	if options.CacheSyncTimeout == 0 {
		options.CacheSyncTimeout = defaultCacheSyncTimeout
	}
	if options.MaxConcurrentReconciles <= 0 {
		options.MaxConcurrentReconciles = 1
	}
	yes, no := true, false
	orDefault(&options.RecoverPanic, &yes)
	orDefault(&options.NeedLeaderElection, &yes)
	orDefault(&options.UsePriorityQueue, &yes)
	orDefault(&options.EnableWarmup, &no)
	if options.Logger.GetSink() == nil {
		options.Logger = log.Log
	}
	options.Logger = options.Logger.WithValues("controller", name)
	if options.LogValues == nil {
		options.LogValues = requestValues[request]
	}
	if options.RateLimiter == nil {
		options.RateLimiter = options.defaultLimiter()
	}
	if options.NewQueue == nil {
		options.NewQueue = options.defaultQueue()
	}
	return checkPolicies(options.RetryPolicies)
}

func (options *TypedOptions[request]) defaultLimiter() workqueue.TypedRateLimiter[request] {
	if *options.UsePriorityQueue {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[request](5*time.Millisecond, 1000*time.Second)
	}
	return workqueue.DefaultTypedControllerRateLimiter[request]()
}

func (options *TypedOptions[request]) defaultQueue() func(string, workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
	logger := options.Logger
	if !*options.UsePriorityQueue {
		return func(name string, limiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
			limiter = fault.Limiter[request]{Of: limiter, Keeper: fault.NewKeeper(name, logger)}
			return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[request]{
				Name: name, MetricsProvider: metrics.WorkqueueMetricsProvider{},
			})
		}
	}
	return func(name string, limiter workqueue.TypedRateLimiter[request]) workqueue.TypedRateLimitingInterface[request] {
		return priorityqueue.New(name, func(o *priorityqueue.Opts[request]) {
			o.RateLimiter, o.Log = limiter, logger
		})
	}
}

// controllerLogger makes the logger of the controller itself.
func (options *TypedOptions[request]) controllerLogger() logr.Logger {
	if options.LogConstructor != nil {
		return options.LogConstructor(nil)
	}
	return options.Logger.WithValues(options.LogValues(nil)...)
}

// requestValues is the default of LogValues.
func requestValues[request comparable](in *request) []any {
	req, ok := any(in).(*reconcile.Request)
	if !ok || req == nil {
		return nil
	}
	return []any{"object", klog.KRef(req.Namespace, req.Name), "namespace", req.Namespace, "name", req.Name}
}
