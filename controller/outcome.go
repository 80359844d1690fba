// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherry-dev/wherry/controller/fault"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// The values of the label "result" of controller_runtime_reconcile_total.
const (
	resultSuccess      = "success"
	resultError        = "error"
	resultRequeue      = "requeue"
	resultRequeueAfter = "requeue_after"
	resultConflict     = "conflict"
	resultStopped      = "stopped"
)

// ConflictPatience is how many conflicts in a row a key may have before the
// next one counts as an error: a reconciler that reads what it writes does not
// get there.
const ConflictPatience = 10

// RetryPolicy says what becomes of a key whose reconcile failed with an error
// of one class.
type RetryPolicy struct {
	// Name tells the policy apart in logs.
	Name string

	// Matches tells whether an error is of this class. It must be set.
	Matches func(error) bool

	// Result is the value of the metrics' label "result". Empty means "error".
	Result string

	// Quiet logs at V(1) instead of as an error, and leaves the counters of
	// errors alone.
	Quiet bool

	// Never drops the key until its next event.
	Never bool

	// Delay, if it is set and answers more than zero, says when the key comes
	// back. Else the rate limiter does.
	Delay func(error) time.Duration
}

// The built-in policies, in the order in which they are asked.
var (
	// Terminal is for reconcile.TerminalError: the key is dropped.
	Terminal = RetryPolicy{Name: "terminal", Never: true, Matches: func(err error) bool {
		return errors.Is(err, reconcile.TerminalError(nil))
	}}

	// Conflict is for errors that are nothing but conflicts: the object was
	// changed by somebody else, which is normal. The retry is quick and quiet.
	Conflict = RetryPolicy{Name: "conflict", Result: resultConflict, Quiet: true, Matches: onlyConflicts}

	// Throttled is for a server that said when to come back.
	Throttled = RetryPolicy{Name: "throttled", Delay: retryAfter, Matches: func(err error) bool {
		return retryAfter(err) > 0
	}}
)

// onlyConflicts tells whether an error is a conflict or several conflicts
// joined. A conflict beside another error must not hide that error.
func onlyConflicts(err error) bool {
	for err != nil {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			return allConflicts(many.Unwrap())
		}
		if many, ok := err.(interface{ Errors() []error }); ok {
			return allConflicts(many.Errors())
		}
		if _, ok := err.(apierrors.APIStatus); ok {
			return apierrors.IsConflict(err)
		}
		err = errors.Unwrap(err)
	}
	return false
}

func allConflicts(errs []error) bool {
	for _, err := range errs {
		if !onlyConflicts(err) {
			return false
		}
	}
	return len(errs) > 0
}

// retryAfter is the delay that the server asked for because it could not do
// its work, or zero. A server that refuses also says when to come back at
// times: a generated name that is taken. That says nothing of its load.
func retryAfter(err error) time.Duration {
	var told apierrors.APIStatus
	if !errors.As(err, &told) || told.Status().Details == nil {
		return 0
	}
	if told.Status().Code < http.StatusInternalServerError && !apierrors.IsTooManyRequests(err) {
		return 0
	}
	return time.Duration(told.Status().Details.RetryAfterSeconds) * time.Second
}

func checkPolicies(policies []RetryPolicy) error {
	for i, p := range policies {
		if p.Matches == nil {
			return fmt.Errorf("the retry policy %d (%q) has no Matches", i, p.Name)
		}
	}
	return nil
}

// ending is how a reconcile ended.
type ending struct {
	ctx       context.Context // the worker's, which the reconcile was given: the term's may end a moment later
	result    reconcile.Result
	err       error
	panicked  bool
	conflicts int // rate-limited retries in a row so far
}

// comeback says when a key returns to the queue.
type comeback uint8

const (
	notAgain comeback = iota
	limited
	delayed
)

// outcome is a row of the table of what may follow a reconcile.
type outcome struct {
	name     string
	when     func(ending) bool
	result   string
	count    prometheus.Counter // of the result; nil if it is to be looked up
	comeback comeback
	after    func(ending) time.Duration // for delayed
	forget   bool                       // whether the count of failures starts anew
	failed   bool                       // whether it counts as an error
	terminal bool                       // whether it counts as a terminal error
	cause    priorityqueue.Event        // why the key comes back
	log      func(logr.Logger, ending)
}

// The table has two parts, for reconciles with an error and for those without;
// the rows of the retry policies stand in the first, before its last row.
var (
	failures = []outcome{
		{name: "stopped", when: gaveUp, result: resultStopped, log: logStopped},
		{name: "panic", when: func(e ending) bool { return e.panicked }, result: resultError, comeback: limited, failed: true, cause: priorityqueue.Retried, log: logNothing},
		{name: "error", when: always, result: resultError, comeback: limited, failed: true, cause: priorityqueue.Retried, log: logError},
	}
	successes = []outcome{
		{name: "requeue after", when: func(e ending) bool { return e.result.RequeueAfter > 0 }, result: resultRequeueAfter, comeback: delayed,
			after: func(e ending) time.Duration { return e.result.RequeueAfter }, forget: true, cause: priorityqueue.Requeued, log: logRequeueAfter},
		{name: "requeue", when: func(e ending) bool { return e.result.Requeue }, result: resultRequeue, comeback: limited, cause: priorityqueue.Requeued, log: logRequeue},
		{name: "success", when: always, result: resultSuccess, forget: true, log: logSuccess},
	}
)

// outcomes is a controller's table.
type outcomes struct{ failures, successes []outcome }

// newOutcomes makes the whole table for a controller.
func newOutcomes(policies []RetryPolicy, m *meter) outcomes {
	first, last := failures[:len(failures)-1], failures[len(failures)-1]
	rows := slices.Clone(first)
	for _, p := range policies {
		rows = append(rows, p.row())
	}
	conflict := Conflict.row()
	conflict.when = func(e ending) bool { return e.conflicts < ConflictPatience && Conflict.Matches(e.err) }
	all := outcomes{failures: append(rows, Terminal.row(), conflict, Throttled.row(), last), successes: slices.Clone(successes)}
	for i := range all.successes {
		all.successes[i].count = m.result(all.successes[i].result)
	}
	return all
}

// of finds the row for how a reconcile ended.
func (all *outcomes) of(e ending) *outcome {
	rows := all.successes
	if e.err != nil {
		rows = all.failures
	}
	for i := range rows {
		if rows[i].when(e) {
			return &rows[i]
		}
	}
	return nil // no: the last row of each part is for every ending
}

func always(ending) bool { return true }

// row turns a policy into a row.
func (p RetryPolicy) row() outcome {
	o := outcome{
		name:     p.Name,
		when:     func(e ending) bool { return p.Matches(e.err) },
		result:   p.Result,
		comeback: limited,
		failed:   !p.Quiet,
		terminal: p.Name == Terminal.Name,
		cause:    priorityqueue.Retried,
		log:      logError,
	}
	if o.result == "" {
		o.result = resultError
	}
	if p.Quiet {
		o.log = logQuietly(p.Name)
	}
	switch {
	case p.Never:
		o.comeback, o.forget = notAgain, true
	case p.Delay != nil:
		o.comeback = delayed
		o.after = func(e ending) time.Duration { return p.Delay(e.err) }
	}
	return o
}

// gaveUp tells whether a reconcile only failed because the controller stops.
func gaveUp(e ending) bool {
	return e.ctx.Err() != nil && errors.Is(e.err, context.Canceled)
}

// apply does what the row says for one key.
func (o *outcome) apply(e ending, m *meter, logger logr.Logger, forget func(), again func(priorityqueue.AddOpts, priorityqueue.Event)) {
	if o.failed {
		m.errors.Inc()
	}
	if o.terminal {
		m.terminal.Inc()
	}
	if o.count != nil {
		o.count.Inc()
	} else {
		m.result(o.result).Inc()
	}
	o.log(logger, e)
	if o.forget {
		forget()
	}
	opts := priorityqueue.AddOpts{Priority: e.result.Priority, RateLimited: o.comeback == limited}
	if o.comeback == delayed {
		opts.After = o.after(e)
		opts.RateLimited = opts.After <= 0
	}
	if o.comeback != notAgain {
		again(opts, o.cause)
	}
}

func logNothing(logr.Logger, ending) {}

func logStopped(logger logr.Logger, e ending) {
	logger.V(1).Info("Reconcile gave up because the controller stops", "reason", e.err.Error())
}

func logError(logger logr.Logger, e ending) {
	if e.result.Requeue || e.result.RequeueAfter > 0 {
		logger.Info("Reconciler returned an error together with Requeue or RequeueAfter; these are ignored when there is an error")
	}
	logger.Error(e.err, "Reconciler error")
}

func logQuietly(policy string) func(logr.Logger, ending) {
	return func(logger logr.Logger, e ending) {
		logger.V(1).Info("Reconcile will be tried again", "policy", policy, "reason", e.err.Error())
	}
}

func logRequeueAfter(logger logr.Logger, e ending) {
	if v := logger.V(5); v.Enabled() {
		v.Info("Reconcile done, requeueing", "after", e.result.RequeueAfter.String())
	}
}

func logRequeue(logger logr.Logger, _ ending) {
	if v := logger.V(5); v.Enabled() {
		v.Info("Reconcile done, requeueing")
	}
}

func logSuccess(logger logr.Logger, _ ending) {
	if v := logger.V(5); v.Enabled() {
		v.Info("Reconcile successful")
	}
}

// noteNegative reports a RequeueAfter that is negative: it means nothing, and
// the reconcile counts as what it is without it.
func noteNegative(faults *fault.Keeper, key any, e ending) {
	faults.Note(fault.NegativeRequeue, key, fmt.Errorf("reconciler returned the negative RequeueAfter %s", e.result.RequeueAfter))
}
