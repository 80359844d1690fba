// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: name}}
}

// lines collects log lines.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger(verbosity int) logr.Logger {
	return funcr.New(func(_, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, args)
	}, funcr.Options{Verbosity: verbosity})
}

func (l *lines) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// bench is a running controller whose queue a test has in hand.
type bench struct {
	*controller[reconcile.Request]
	queue queue
	lines lines
	stop  func()
}

// named counts the names that fresh has made.
var named atomic.Int64

// fresh is a name that no controller of this process has had: metrics go by the name, and outlive the controller and the run of
// a test.
func fresh(name string) string { return fmt.Sprint(name, " ", named.Add(1)) }

// run makes and starts a controller without a manager. It must run in a
// bubble.
func run(t *testing.T, name string, r reconcile.Func, change ...func(*Options)) *bench {
	t.Helper()
	b := &bench{}
	options := Options{Reconciler: r, Logger: b.lines.logger(0)}
	for _, c := range change {
		c(&options)
	}
	c, err := NewUnmanaged(name, options)
	if err != nil {
		t.Fatal(err)
	}
	b.controller = c.(*controller[reconcile.Request])
	if err := c.Watch(source.Func(func(_ context.Context, q queue) error { b.queue = q; return nil })); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	synctest.Wait()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Start ended with %v", err)
		}
	})
	t.Cleanup(b.stop)
	return b
}

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("changed"))
}

// answered is what the client makes of an answer with the given code and Retry-After header.
func answered(code, seconds int) error {
	return apierrors.NewGenericServerResponse(code, "get", schema.GroupResource{Resource: "pods"}, "p", "", seconds, true)
}

// TestOutcomes runs one reconcile for every row of the table and looks at what
// follows: the result label, the counters, when the key comes back, and the
// lines in the log.
func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	custom := RetryPolicy{Name: "custom", Result: "teapot", Quiet: true, Never: true, Matches: func(err error) bool { return errors.Is(err, errTeapot) }}
	for _, c := range []struct {
		name     string
		result   reconcile.Result
		err      error
		panics   bool
		label    string
		errors   int
		terminal int
		panicked int
		after    time.Duration // -1: not again
		logged   string        // an error line that holds this text; "" for none
	}{
		{name: "success", label: "success", after: -1},
		{name: "requeue", result: reconcile.Result{Requeue: true}, label: "requeue", after: 5 * time.Millisecond},
		{name: "requeue after", result: reconcile.Result{RequeueAfter: time.Hour}, label: "requeue_after", after: time.Hour},
		{name: "requeue and after", result: reconcile.Result{Requeue: true, RequeueAfter: time.Hour}, label: "requeue_after", after: time.Hour},
		{name: "negative requeue", result: reconcile.Result{RequeueAfter: -time.Hour}, label: "success", after: -1, logged: "negative RequeueAfter"},
		{name: "error", err: boom, label: "error", errors: 1, after: 5 * time.Millisecond, logged: "Reconciler error"},
		{name: "error and requeue", err: boom, result: reconcile.Result{RequeueAfter: time.Hour}, label: "error", errors: 1, after: 5 * time.Millisecond, logged: "Reconciler error"},
		{name: "terminal", err: fmt.Errorf("wrapped: %w", reconcile.TerminalError(boom)), label: "error", errors: 1, terminal: 1, after: -1, logged: "Reconciler error"},
		{name: "conflict", err: fmt.Errorf("wrapped: %w", conflict()), label: "conflict", after: 5 * time.Millisecond},
		{name: "conflicts joined", err: errors.Join(conflict(), conflict()), label: "conflict", after: 5 * time.Millisecond},
		{name: "conflict and error", err: errors.Join(conflict(), boom), label: "error", errors: 1, after: 5 * time.Millisecond, logged: "Reconciler error"},
		{name: "throttled", err: apierrors.NewTooManyRequests("slow down", 30), label: "error", errors: 1, after: 30 * time.Second, logged: "Reconciler error"},
		{name: "throttled, no hint", err: apierrors.NewTooManyRequestsError("slow down"), label: "error", errors: 1, after: 5 * time.Millisecond, logged: "Reconciler error"},
		{name: "unavailable for a while", err: fmt.Errorf("wrapped: %w", answered(503, 20)), label: "error", errors: 1, after: 20 * time.Second, logged: "Reconciler error"},
		{name: "unavailable, no hint", err: answered(503, 0), label: "error", errors: 1, after: 5 * time.Millisecond, logged: "Reconciler error"},
		{name: "server timeout", err: apierrors.NewServerTimeout(schema.GroupResource{}, "get", 7), label: "error", errors: 1, after: 7 * time.Second, logged: "Reconciler error"},
		{name: "generated name taken", err: apierrors.NewGenerateNameConflict(schema.GroupResource{}, "x", 9), label: "error", errors: 1, after: 5 * time.Millisecond, logged: "Reconciler error"},
		{name: "panic", panics: true, label: "error", errors: 1, panicked: 1, after: 5 * time.Millisecond, logged: "Observed a panic in reconciler"},
		{name: "custom", err: errTeapot, label: "teapot", after: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var again time.Duration = -1
				runs := 0
				name := fresh("outcome " + c.name)
				b := run(t, name, func(context.Context, reconcile.Request) (reconcile.Result, error) {
					runs++
					if runs > 1 {
						again = time.Since(began)
						return reconcile.Result{}, nil
					}
					if c.panics {
						panic("boom")
					}
					return c.result, c.err
				}, func(o *Options) { o.RetryPolicies = []RetryPolicy{custom} })
				b.queue.Add(request("p"))
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				b.stop()
				if again != c.after {
					t.Errorf("the key came back after %s, want %s", again, c.after)
				}
				m := b.metrics
				for what, pair := range map[string][2]float64{
					"result":   {testutil.ToFloat64(m.result(c.label)), map[bool]float64{true: 2, false: 1}[c.label == "success" && runs > 1]},
					"errors":   {testutil.ToFloat64(m.errors), float64(c.errors)},
					"terminal": {testutil.ToFloat64(m.terminal), float64(c.terminal)},
					"panics":   {testutil.ToFloat64(m.panics), float64(c.panicked)},
					"active":   {testutil.ToFloat64(m.active), 0},
				} {
					if pair[0] != pair[1] {
						t.Errorf("%s counts %v, want %v", what, pair[0], pair[1])
					}
				}
				if n := b.options.RateLimiter.NumRequeues(request("p")); n != 0 {
					t.Errorf("the key has %d failures in the end, want none", n)
				}
				if found := b.lines.with(`"error"=`); (c.logged == "") != (len(found) == 0) || len(found) > 1 {
					t.Errorf("the error lines are %q, want one only if it is worth one", found)
				} else if c.logged != "" && (!strings.Contains(found[0], c.logged) || !strings.Contains(found[0], name) || !strings.Contains(found[0], "p")) {
					t.Errorf("the error line is %q, want %q with controller and key", found[0], c.logged)
				}
			})
		})
	}
}

// TestGoexit wants a reconcile that ended its goroutine to count as failed, the
// key to come back as after any error, and its worker to be replaced, be it the
// only one.
func TestGoexit(t *testing.T) {
	for face, priorities := range map[string]bool{"priority": true, "classic": false} {
		t.Run(face, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				b := run(t, "goexit "+face, func(context.Context, reconcile.Request) (reconcile.Result, error) {
					if runs++; runs <= 2 {
						runtime.Goexit()
					}
					return reconcile.Result{}, nil
				}, func(o *Options) { o.UsePriorityQueue = &priorities })
				before := testutil.ToFloat64(b.metrics.errors)
				b.queue.Add(request("p"))
				time.Sleep(time.Second) // the bubble's: far beyond the delays of two retries
				synctest.Wait()         // without it nothing orders the reads below behind what the worker wrote
				if runs != 3 || b.queue.NumRequeues(request("p")) != 0 {
					t.Errorf("%d reconciles and %d failures in a row, want 3 and, after the last, none", runs, b.queue.NumRequeues(request("p")))
				}
				if n := testutil.ToFloat64(b.metrics.errors) - before; n != 2 {
					t.Errorf("errors counts %v, want 2", n)
				}
				if said := b.lines.with("ended its goroutine"); len(said) != 2 {
					t.Errorf("the log has %d lines on it, want 2: %q", len(said), b.lines.all)
				}
				if active := testutil.ToFloat64(b.metrics.active); active != 0 {
					t.Errorf("%v workers are active, want none", active)
				}
			})
		})
	}
}

// TestOddLimiter wants a rate limiter of which every method panics to delay a
// failed key by a second, whatever the queue, and to do no other harm.
func TestOddLimiter(t *testing.T) {
	for face, priorities := range map[string]bool{"priority": true, "classic": false} {
		t.Run(face, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var runs []time.Duration
				began := time.Now()
				b := run(t, "odd limiter "+face, func(context.Context, reconcile.Request) (reconcile.Result, error) {
					if runs = append(runs, time.Since(began)); len(runs) < 3 {
						return reconcile.Result{}, errTeapot
					}
					return reconcile.Result{}, nil
				}, func(o *Options) {
					o.UsePriorityQueue = &priorities
					o.RateLimiter = struct {
						workqueue.TypedRateLimiter[reconcile.Request]
					}{} // each method is that of nil
				})
				b.queue.Add(request("p"))
				time.Sleep(time.Minute)
				b.stop()
				if !slices.Equal(runs, []time.Duration{0, time.Second, 2 * time.Second}) {
					t.Errorf("reconciles at %v, want one each second until it succeeds", runs)
				}
				if found := b.lines.with("Contained a fault"); len(found) != 1 || !strings.Contains(found[0], `"name"="p"`) {
					t.Errorf("the lines are %q, want one with the key", found)
				}
			})
		})
	}
}

var errTeapot = errors.New("teapot")

// TestConflictPatience wants a key that does not get over its conflicts to be
// an error in the end.
func TestConflictPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, fresh("patience"), func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, conflict()
		})
		b.queue.Add(request("p"))
		for testutil.ToFloat64(b.metrics.errors) == 0 {
			time.Sleep(time.Second)
		}
		b.stop()
		if n := testutil.ToFloat64(b.metrics.result(resultConflict)); n != ConflictPatience {
			t.Errorf("%v conflicts were quiet, want %d", n, ConflictPatience)
		}
	})
}

// TestPriorityKept is CR#3157: a key keeps its priority when it is requeued,
// unless the Result sets one.
func TestPriorityKept(t *testing.T) {
	seven := 7
	for name, c := range map[string]struct {
		result reconcile.Result
		err    error
		want   int
	}{
		"error":             {err: errors.New("boom"), want: -100},
		"conflict":          {err: conflict(), want: -100},
		"requeue":           {result: reconcile.Result{Requeue: true}, want: -100},
		"requeue after":     {result: reconcile.Result{RequeueAfter: time.Second}, want: -100},
		"set":               {result: reconcile.Result{RequeueAfter: time.Second, Priority: &seven}, want: 7},
		"set with an error": {result: reconcile.Result{Priority: &seven}, err: errors.New("boom"), want: 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []int
				c0 := c
				b := run(t, "priority "+name, func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
					turn := ctx.Value(turnKey{}).(*turn[reconcile.Request])
					seen = append(seen, turn.taken.Priority)
					if len(seen) > 1 {
						return reconcile.Result{}, nil
					}
					return c0.result, c0.err
				})
				low := -100
				b.queue.(priorityqueue.PriorityQueue[reconcile.Request]).AddWithOpts(priorityqueue.AddOpts{Priority: &low}, request("p"))
				time.Sleep(time.Minute)
				synctest.Wait()
				b.stop()
				if len(seen) != 2 || seen[0] != -100 || seen[1] != c.want {
					t.Errorf("the priorities were %v, want -100 and %d", seen, c.want)
				}
			})
		})
	}
}

// TestQuietStop wants a reconcile that only failed because the controller
// stops to be no error.
func TestQuietStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := run(t, fresh("quiet stop"), func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			<-ctx.Done()
			return reconcile.Result{}, fmt.Errorf("list pods: %w", ctx.Err())
		})
		b.queue.Add(request("p"))
		synctest.Wait()
		b.stop()
		if found := b.lines.with(`"error"=`); len(found) != 0 {
			t.Errorf("the stop logged %q", found)
		}
		if n := testutil.ToFloat64(b.metrics.errors); n != 0 {
			t.Errorf("the stop counted %v errors", n)
		}
	})
}

// TestQuietStopAheadOfTheTerm has Start's context end a moment before the term's, which follows it: by then the reconcile can be
// over.
func TestQuietStopAheadOfTheTerm(t *testing.T) {
	c := unmanaged(t, fresh("quiet stop"), reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		<-ctx.Done()
		return reconcile.Result{}, fmt.Errorf("list pods: %w", ctx.Err())
	}))
	term := c.beginTerm(t.Context())
	defer c.endTerm(term)
	term.queue.Add(request("p"))
	taken, _ := term.intake.take()
	started, stop := context.WithCancel(t.Context())
	stop()
	c.work(term, c.newTurn(started, taken))
	term.intake.done(taken)
	if n := testutil.ToFloat64(c.metrics.errors); n != 0 {
		t.Errorf("the stop counted %v errors", n)
	}
	if n := testutil.ToFloat64(c.metrics.result(resultStopped)); n != 1 {
		t.Errorf("%v reconciles were stopped, want 1", n)
	}
}

// TestReconciliationTimeout wants the context to end, once, and to be counted.
func TestReconciliationTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took []time.Duration
		name := fresh("timeout")
		b := run(t, name, func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			began := time.Now()
			if req == request("slow") {
				<-ctx.Done()
			}
			took = append(took, time.Since(began))
			return reconcile.Result{}, nil
		}, func(o *Options) { o.ReconciliationTimeout = time.Minute })
		b.queue.Add(request("quick"))
		b.queue.Add(request("slow"))
		time.Sleep(time.Hour)
		synctest.Wait()
		b.stop()
		if len(took) != 2 || took[0] != 0 || took[1] != time.Minute {
			t.Errorf("the reconciles took %v, want none and a minute", took)
		}
		if n := testutil.ToFloat64(allMetrics().timeouts.WithLabelValues(name)); n != 1 {
			t.Errorf("%v timeouts are counted, want 1", n)
		}
	})
}

// TestPanicNotRecovered wants RecoverPanic false to let a panic through, and
// to count it.
func TestPanicNotRecovered(t *testing.T) {
	no, name := false, fresh("panic")
	c, err := NewUnmanaged(name, Options{RecoverPanic: &no, Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		panic("boom")
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if r := recover(); r != "boom" {
			t.Errorf("recovered %v, want boom", r)
		}
		if n := testutil.ToFloat64(metricsFor(name).panics); n != 1 {
			t.Errorf("%v panics are counted, want 1", n)
		}
	}()
	_, _ = c.Reconcile(log.IntoContext(t.Context(), logr.Discard()), request("p"))
}

// TestDirectReconcile wants Reconcile to be usable without Start.
func TestDirectReconcile(t *testing.T) {
	c, err := NewUnmanaged("direct", Options{Logger: logr.Discard(), Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		panic("boom")
	})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Reconcile(t.Context(), request("p")); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("the panic became %v", err)
	}
}

// TestQC5Requeue is QC-5 (6): an event before RequeueAfter is over uses it up.
func TestQC5Requeue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var runs []time.Duration
		b := run(t, "requeue", func(context.Context, reconcile.Request) (reconcile.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			runs = append(runs, time.Since(began))
			return reconcile.Result{RequeueAfter: time.Hour}, nil
		})
		b.queue.Add(request("p"))
		time.Sleep(50 * time.Millisecond)
		b.queue.Add(request("p"))
		time.Sleep(450 * time.Millisecond)
		synctest.Wait()
		mu.Lock()
		if len(runs) != 2 {
			t.Errorf("%d reconciles in 500ms, want 2", len(runs))
		}
		mu.Unlock()
		time.Sleep(time.Hour)
		synctest.Wait()
		b.stop()
		if len(runs) != 3 || runs[2] != time.Hour+50*time.Millisecond {
			t.Errorf("the reconciles were at %v, want the third an hour after the second", runs)
		}
	})
}

// TestQC5Classic wants the classic queue to keep client-go's behaviour: a
// delayed and an immediate add are two hand-outs.
func TestQC5Classic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := false
		runs := 0
		b := run(t, "classic", func(context.Context, reconcile.Request) (reconcile.Result, error) {
			runs++
			return reconcile.Result{}, nil
		}, func(o *Options) { o.UsePriorityQueue = &no })
		if _, ok := b.queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			t.Error("the classic queue has priorities")
		}
		b.queue.AddAfter(request("p"), 300*time.Millisecond)
		b.queue.Add(request("p"))
		time.Sleep(time.Second)
		synctest.Wait()
		b.stop()
		if runs != 2 {
			t.Errorf("%d reconciles, want 2", runs)
		}
	})
}

// TestClassicComeback wants requeues to work with the classic queue too.
func TestClassicComeback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := false
		began := time.Now()
		var runs []time.Duration
		b := run(t, "classic comeback", func(context.Context, reconcile.Request) (reconcile.Result, error) {
			runs = append(runs, time.Since(began))
			switch len(runs) {
			case 1:
				return reconcile.Result{RequeueAfter: time.Minute}, nil
			case 2:
				return reconcile.Result{}, errors.New("boom")
			}
			return reconcile.Result{}, nil
		}, func(o *Options) { o.UsePriorityQueue = &no })
		b.queue.Add(request("p"))
		time.Sleep(time.Hour)
		synctest.Wait()
		b.stop()
		if len(runs) != 3 || runs[1] != time.Minute || runs[2] != time.Minute+5*time.Millisecond {
			t.Errorf("the reconciles were at %v", runs)
		}
	})
}
