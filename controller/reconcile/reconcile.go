// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Result tells what is to happen to a key whose reconcile returned no error.
// The zero value means: nothing until the next event.
type Result struct {
	// Requeue asks for another reconcile after the rate limiter's delay.
	//
	// Deprecated: return an error to try again with a growing delay, or set
	// RequeueAfter. It keeps working.
	Requeue bool

	// RequeueAfter, if positive, asks for another reconcile after that time
	// and resets the key's count of failures. An event in between makes the
	// key due at once, and uses the request up.
	RequeueAfter time.Duration

	// Priority is the priority of the requeued key, also after an error. Nil
	// keeps the priority the key had.
	Priority *int
}

// IsZero tells whether r is nil or asks for nothing.
func (r *Result) IsZero() bool {
	return r == nil || *r == Result{}
}

// Request names the object to reconcile. The namespace of a cluster-scoped
// object is empty.
type Request struct {
	types.NamespacedName
}

// Reconciler reconciles objects by namespace and name.
type Reconciler = TypedReconciler[Request]

// TypedReconciler reconciles keys of any comparable type.
type TypedReconciler[request comparable] interface {
	// Reconcile brings the object named by the request closer to its desired
	// state. The context is cancelled when the controller stops and when its
	// ReconciliationTimeout is over; it carries a logger and the ID of this
	// reconcile.
	//
	// After an error the key is tried again with a growing delay and the
	// Result is ignored but for its Priority; see TerminalError for errors
	// that must not be tried again.
	Reconcile(context.Context, request) (Result, error)
}

// Func is a Reconciler that is a function.
type Func = TypedFunc[Request]

// TypedFunc is a TypedReconciler that is a function.
type TypedFunc[request comparable] func(context.Context, request) (Result, error)

var _ Reconciler = Func(nil)

// Reconcile calls f.
func (f TypedFunc[request]) Reconcile(ctx context.Context, req request) (Result, error) {
	return f(ctx, req)
}

// TerminalError marks an error that trying again cannot cure: the key is not
// requeued. It is logged and counted. The wrapped error stays reachable for
// errors.Is and errors.As.
func TerminalError(wrapped error) error {
	return &terminalError{wrapped: wrapped}
}

type terminalError struct{ wrapped error }

func (e *terminalError) Error() string {
	if e.wrapped == nil {
		return "nil terminal error"
	}
	return "terminal error: " + e.wrapped.Error()
}

func (e *terminalError) Unwrap() error { return e.wrapped }

// Is makes errors.Is(err, TerminalError(nil)) ask whether err is terminal.
func (e *terminalError) Is(target error) bool {
	var t *terminalError
	return errors.As(target, &t)
}
