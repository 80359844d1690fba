// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
)

// Runnable is a part of the process.
type Runnable interface {
	// Start blocks until the runnable is done or ctx ends. When ctx ends it returns soon: the manager waits for it, but not for
	// ever. An error stops the manager; nil does not, so a job that runs once just returns. A panic ends the process.
	Start(ctx context.Context) error
}

// RunnableFunc is a function as a [Runnable]; it follows the same rules.
type RunnableFunc func(context.Context) error

// Start calls r.
func (r RunnableFunc) Start(ctx context.Context) error { return r(ctx) }

// LeaderElectionRunnable is a [Runnable] that says whether it waits for leadership. One that says nothing waits.
type LeaderElectionRunnable interface {
	NeedLeaderElection() bool
}

// warmable is a runnable that can get ready for leadership before it has it. Warmup blocks like Start, and its context ends
// with the process, not when leadership comes.
type warmable interface {
	Runnable
	Warmup(context.Context) error
}

// warmup is the part of a warmable that needs no leadership.
type warmup struct{ warmable }

func (w warmup) Start(ctx context.Context) error { return w.Warmup(ctx) }

// nameOf is what errors and logs call r.
func nameOf(r Runnable) string {
	switch r := r.(type) {
	case warmup:
		return "warm-up of " + nameOf(r.warmable)
	case fmt.Stringer:
		return r.String()
	case RunnableFunc:
		if f := runtime.FuncForPC(reflect.ValueOf(r).Pointer()); f != nil {
			return f.Name()
		}
	}
	return fmt.Sprintf("%T", r)
}
