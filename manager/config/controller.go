// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/go-logr/logr"
)

// Controller holds defaults for every controller of a manager; a controller's own option, where set, comes first.
// The pointers tell "not said" (nil) from false.
type Controller struct {
	// SkipNameValidation lets two controllers of one manager have the same name, and so share their metrics. Nil means false.
	SkipNameValidation *bool

	// GroupKindConcurrency gives the workers of the controller whose For object has that "Kind.group" ("Pod" or "Pod." for the
	// core group, "ReplicaSet.apps"). A controller with its own number ignores it.
	GroupKindConcurrency map[string]int

	// MaxConcurrentReconciles is how many keys one controller works on at a time. Zero means 1.
	MaxConcurrentReconciles int

	// CacheSyncTimeout is how long a controller waits for its sources to be filled before its start fails. Zero means 2 minutes.
	CacheSyncTimeout time.Duration

	// RecoverPanic turns a panic in Reconcile into an error. Nil means true.
	RecoverPanic *bool

	// NeedLeaderElection says whether controllers wait for the lease. Nil means true.
	NeedLeaderElection *bool

	// EnableWarmup fills a controller's sources and queue before the lease is held, so that taking over is quick. It changes
	// nothing for a controller that needs no lease. Nil means false.
	EnableWarmup *bool

	// UsePriorityQueue picks the queue that knows priorities. Nil means true.
	UsePriorityQueue *bool

	// Logger is the base of controllers' loggers. The zero value means the manager's.
	Logger logr.Logger

	// ReconciliationTimeout is how long one Reconcile call may run before its context is cancelled. Zero means without limit.
	ReconciliationTimeout time.Duration
}
