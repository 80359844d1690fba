// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/client/log/zap"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// quiet is a logger that counts what is asked of its sink.
type quiet struct {
	logr.LogSink
	values, names *int
}

func (q quiet) WithValues(kv ...any) logr.LogSink {
	*q.values++
	return quiet{q.LogSink.WithValues(kv...), q.values, q.names}
}

func (q quiet) WithName(name string) logr.LogSink {
	*q.names++
	return quiet{q.LogSink.WithName(name), q.values, q.names}
}

// turnFor makes the context of a reconcile without a queue.
func turnFor(t *testing.T, o Options) *turn[reconcile.Request] {
	t.Helper()
	o.Reconciler = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	if err := o.settle("logs"); err != nil {
		t.Fatal(err)
	}
	return &turn[reconcile.Request]{Context: t.Context(), options: &o, base: o.controllerLogger(), taken: priorityqueue.Taken[reconcile.Request]{Key: request("p")}}
}

// TestLazyLogger wants nothing to be asked of the real sink until a line is
// logged, and then the line to be as if nothing had been lazy.
func TestLazyLogger(t *testing.T) {
	var values, names int
	var l lines
	sink := quiet{l.logger(1).GetSink(), &values, &names}
	turn := turnFor(t, Options{Logger: logr.New(sink)})
	values = 0
	logger := log.FromContext(turn).WithName("n").WithValues("number", 7).V(1)
	logger.V(1).Info("not enabled")
	if values+names != 0 {
		t.Errorf("the sink was asked for %d values and %d names before a line was logged", values, names)
	}
	if !logger.Enabled() || logger.V(1).Enabled() {
		t.Error("the wrong levels are enabled")
	}
	logger.Info("hello", "more", true)
	logger.Error(errors.New("boom"), "bye")
	want := []string{`"controller"="logs"`, `"namespace"="a"`, `"name"="p"`, `"reconcileID"="` + string(ReconcileIDFromContext(turn)), `"number"=7`}
	for _, line := range l.with("") {
		for _, w := range want {
			if !strings.Contains(line, w) {
				t.Errorf("the line %q lacks %q", line, w)
			}
		}
	}
	if n := len(l.with("")); n != 2 {
		t.Errorf("%d lines were logged, want 2", n)
	}
	if len(l.with(`"more"=true`)) != 1 || len(l.with(`"error"="boom"`)) != 1 {
		t.Errorf("the lines are %q", l.with(""))
	}
}

// TestLazyValuesAreAsTheyWere wants a value that changes after WithValues to
// be logged as it was.
func TestLazyValuesAreAsTheyWere(t *testing.T) {
	var l lines
	turn := turnFor(t, Options{Logger: l.logger(0)})
	labels := map[string]string{"a": "before"}
	logger := log.FromContext(turn).WithValues("labels", labels)
	labels["a"] = "after"
	logger.Info("hello")
	if len(l.with("before")) != 1 {
		t.Errorf("the line is %q", l.with(""))
	}
}

// TestLazyCaller wants the line to name who logged it.
func TestLazyCaller(t *testing.T) {
	var got []string
	logger := funcr.New(func(_, args string) { got = append(got, args) }, funcr.Options{LogCaller: funcr.All})
	for name, options := range map[string]Options{
		"values":      {Logger: logger},
		"constructor": {LogConstructor: func(*reconcile.Request) logr.Logger { return logger }},
	} {
		got = nil
		turn := turnFor(t, options)
		_, _, line, _ := runtime.Caller(0)
		log.FromContext(turn).Info("here")
		log.FromContext(turn).WithValues("a", 1).WithName("n").Info("here")
		func() { log.FromContext(turn).WithCallDepth(1).Info("here") }()
		for i, l := range got {
			if want := fmt.Sprintf(`"file"="logging_test.go" "line"=%d`, line+1+i); !strings.Contains(strings.ReplaceAll(l, ",", " "), want) &&
				!strings.Contains(l, fmt.Sprintf(`"line":%d`, line+1+i)) {
				t.Errorf("%s: line %d is %q, want it to name line %d", name, i, l, line+1+i)
			}
		}
		if len(got) != 3 {
			t.Errorf("%s: %d lines, want 3", name, len(got))
		}
	}
}

// TestLogConstructor wants it to be called when the logger is first asked
// something, with the key, and at most once.
func TestLogConstructor(t *testing.T) {
	var l lines
	var calls []string
	turn := turnFor(t, Options{LogConstructor: func(req *reconcile.Request) logr.Logger {
		if req == nil {
			return l.logger(0)
		}
		calls = append(calls, req.Name)
		return l.logger(3).WithValues("mine", req.Name)
	}})
	logger := log.FromContext(turn)
	if len(calls) != 0 {
		t.Error("it was called before anything was logged")
	}
	if !logger.V(3).Enabled() || logger.V(4).Enabled() {
		t.Error("its verbosity does not count")
	}
	logger.V(3).Info("hello")
	logger.Info("hello")
	if len(calls) != 1 || calls[0] != "p" || len(l.with(`"mine"="p"`)) != 2 || len(l.with("reconcileID")) != 2 {
		t.Errorf("it was called for %q, and the lines are %q", calls, l.with(""))
	}
}

// TestVerbosityOffset wants a base logger with a verbosity of its own to keep
// it.
func TestVerbosityOffset(t *testing.T) {
	var l lines
	turn := turnFor(t, Options{Logger: l.logger(1).V(1)})
	log.FromContext(turn).Info("hello")
	log.FromContext(turn).V(1).Info("too much")
	if n := len(l.with("")); n != 1 {
		t.Errorf("%d lines, want 1", n)
	}
}

// TestNoSink wants a logger without a sink to be fine.
func TestNoSink(t *testing.T) {
	turn := turnFor(t, Options{LogConstructor: func(*reconcile.Request) logr.Logger { return logr.Logger{} }})
	logger := log.FromContext(turn)
	logger.Info("hello")
	logger.WithValues("a", 1).WithName("n").Error(errors.New("boom"), "bye")
	if logger.Enabled() {
		t.Error("it is enabled")
	}
}

// TestReconcileID wants one ID for a reconcile, another for the next, none
// outside, and contexts derived from it to know it.
func TestReconcileID(t *testing.T) {
	one, two := turnFor(t, Options{}), turnFor(t, Options{})
	derived, cancel := context.WithCancel(one)
	defer cancel()
	id := ReconcileIDFromContext(derived)
	if id == "" || id != ReconcileIDFromContext(one) || id == ReconcileIDFromContext(two) || ReconcileIDFromContext(t.Context()) != "" {
		t.Errorf("the IDs are %q, %q and %q", id, ReconcileIDFromContext(one), ReconcileIDFromContext(two))
	}
}

// TestContextEnds wants a turn to end with its parent, and derived contexts
// with it.
func TestContextEnds(t *testing.T) {
	turn := turnFor(t, Options{})
	parent, cancel := context.WithCancelCause(t.Context())
	turn.Context = parent
	derived, stop := context.WithTimeout(turn, time.Hour)
	defer stop()
	boom := errors.New("boom")
	cancel(boom)
	<-derived.Done()
	if context.Cause(turn) != boom || context.Cause(derived) != boom {
		t.Errorf("the causes are %v and %v", context.Cause(turn), context.Cause(derived))
	}
}

// TestCauses wants a reconcile to know why it was called.
func TestCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, informer := pods(t)
		informer.Synced()
		var seen [][]priorityqueue.Cause
		c := unmanaged(t, "causes", reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			causes, _ := CausesFromContext(ctx)
			seen = append(seen, causes)
			if len(seen) == 1 {
				return reconcile.Result{}, errors.New("boom")
			}
			return reconcile.Result{}, nil
		}))
		if err := c.Watch(src); err != nil {
			t.Fatal(err)
		}
		end := begin(t, c)
		informer.Add(pod("p"))
		time.Sleep(time.Second)
		synctest.Wait()
		if err := end(); err != nil {
			t.Error(err)
		}
		if len(seen) != 2 || seen[0][0].Event != priorityqueue.Created || seen[0][0].Source != "kind source: *v1.Pod" ||
			seen[1][0].Event != priorityqueue.Retried || seen[1][0].Source != "reconciler" {
			t.Errorf("the causes are %v", seen)
		}
		if causes, missed := CausesFromContext(t.Context()); causes != nil || missed != 0 {
			t.Errorf("outside there are causes: %v", causes)
		}
	})
}

// TestDebugLines wants the lines that people look for when they turn the
// verbosity up.
func TestDebugLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		src, informer := pods(t)
		informer.Synced()
		c := unmanaged(t, "debug", reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}), func(o *Options) { o.Logger = l.logger(5) })
		if err := c.Watch(src); err != nil {
			t.Fatal(err)
		}
		end := begin(t, c)
		informer.Add(pod("p"))
		synctest.Wait()
		if err := end(); err != nil {
			t.Error(err)
		}
		for _, want := range []string{
			`"msg"="Starting EventSource" "controller"="debug" "source"="kind source: *v1.Pod"`,
			`"msg"="Starting Controller"`,
			`"msg"="Starting workers" "controller"="debug" "worker count"=1`,
			`"msg"="Reconciling"`,
			`"msg"="Reconcile successful"`,
		} {
			if len(l.with(want)) != 1 {
				t.Errorf("no line has %s: %q", want, l.with(""))
			}
		}
	})
}

// TestReconcileAllocations holds a reconcile that logs nothing to its budget,
// with a logger that would write: one allocation, the context itself.
func TestReconcileAllocations(t *testing.T) {
	c := unmanaged(t, "allocations", reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	}), func(o *Options) { o.Logger = zap.New(zap.WriteTo(io.Discard)) })
	term := c.beginTerm(t.Context())
	defer c.endTerm(term)
	if n := testing.AllocsPerRun(1000, func() {
		term.queue.Add(request("p"))
		taken, _ := term.intake.take()
		c.work(term, c.newTurn(term.ctx, taken))
		term.intake.done(taken)
	}); n > 1 {
		t.Errorf("%v allocations for a reconcile, want 1", n)
	}
}
