// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller runs reconcilers: it starts the sources that say which
// keys need work, keeps those keys in a queue, and gives each key to a
// reconciler, never to two at once, until the reconciler is content.
//
// Most programs make controllers with package builder. New and NewTyped add a
// controller to a manager; NewUnmanaged and NewTypedUnmanaged leave starting
// it to the caller.
//
// # What becomes of a key
//
// What follows a reconcile is decided by the first row that fits (the table
// itself is outcomes, in outcome.go):
//
//	row            when                                     result label   the key comes back
//	stopped        the controller stops and the reconcile   stopped        no
//	               gave up because of that
//	panic          the reconciler panicked (and RecoverPanic error         rate limited
//	               is on)
//	terminal       the error is a reconcile.TerminalError   error          no
//	conflict       nothing but conflicts, fewer than        conflict       rate limited
//	               ConflictPatience in a row
//	throttled      the server said when to come back        error          when the server said
//	error          any other error                          error          rate limited
//	requeue after  RequeueAfter is positive                 requeue_after  after that time
//	requeue        Requeue is set                           requeue        rate limited
//	success        anything else                            success        no
//
// Rows for other errors can be put before "terminal" with
// TypedOptions.RetryPolicies.
//
// # Logging
//
// The logger in a reconcile's context is made when the reconciler first logs
// something that is enabled. A reconcile that logs nothing pays nothing for
// it. So is the reconcile's ID.
package controller
