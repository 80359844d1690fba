// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/cache/informertest"
	"github.com/wherry-dev/wherry/controller/controllertest"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
)

// pods makes a source of pods whose informer the test drives.
func pods(t *testing.T) (source.SyncingSource, *controllertest.FakeInformer) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &informertest.FakeInformers{Scheme: scheme}
	for gvk := range scheme.AllKnownTypes() {
		if gvk.Kind == "Pod" {
			c.InformersByGVK = map[schema.GroupVersionKind]toolscache.SharedIndexInformer{gvk: controllertest.NewFakeInformer()}
		}
	}
	informer, err := c.FakeInformerFor(t.Context(), &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	return source.Kind(c, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}), informer
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: "1"}}
}

// counting is a reconciler that counts.
func counting(n *atomic.Int32) reconcile.Func {
	return func(context.Context, reconcile.Request) (reconcile.Result, error) {
		n.Add(1)
		return reconcile.Result{}, nil
	}
}

func unmanaged(t *testing.T, name string, r reconcile.Reconciler, change ...func(*Options)) *controller[reconcile.Request] {
	t.Helper()
	o := Options{Reconciler: r, Logger: logr.Discard()}
	for _, c := range change {
		c(&o)
	}
	c, err := NewUnmanaged(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*controller[reconcile.Request])
}

// begin starts a controller; end stops it and returns what Start returned.
func begin(t *testing.T, c Controller) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-ended
	}
}

// TestRestart wants a controller to be stopped and started again, with all
// handlers gone in between (CR#2983) and one at a time.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		src, informer := pods(t)
		informer.Synced()
		c := unmanaged(t, "restart", counting(&n))
		if err := c.Watch(src); err != nil {
			t.Fatal(err)
		}
		for round := range int32(3) {
			end := begin(t, c)
			if err := c.Start(t.Context()); err == nil {
				t.Error("a running controller starts again")
			}
			n.Store(0)
			informer.Add(pod("p"))
			synctest.Wait()
			if n.Load() != 1 || informer.Handlers() != 1 {
				t.Errorf("round %d: %d reconciles and %d handlers, want one each", round, n.Load(), informer.Handlers())
			}
			if err := end(); err != nil {
				t.Errorf("round %d: Start returned %v", round, err)
			}
			if informer.Handlers() != 0 {
				t.Errorf("round %d: %d handlers are left", round, informer.Handlers())
			}
		}
	})
}

// TestSyncTimeout is CR#1428: Start fails when the time is over, and names
// the kind.
func TestSyncTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		src, informer := pods(t)
		c := unmanaged(t, "sync", counting(&n), func(o *Options) { o.CacheSyncTimeout = time.Minute })
		if err := c.Watch(src); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := c.Start(t.Context())
		if took := time.Since(began); took != time.Minute || err == nil || !strings.Contains(err.Error(), "*v1.Pod") || !strings.Contains(err.Error(), `"sync"`) {
			t.Errorf("after %s: %v, want an error that names controller and kind after a minute", took, err)
		}
		if informer.Handlers() != 0 {
			t.Error("the handler is left after the failure")
		}
		informer.Synced()
		informer.Add(pod("p"))
		end := begin(t, c)
		if err := end(); err != nil || n.Load() != 1 {
			t.Errorf("after the failure it does not work: %v, %d reconciles", err, n.Load())
		}
	})
}

// TestStopWhileSyncing is CR#1786: it is no error.
func TestStopWhileSyncing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		src, _ := pods(t)
		c := unmanaged(t, "stop", counting(&n))
		if err := c.Watch(src); err != nil {
			t.Fatal(err)
		}
		if err := begin(t, c)(); err != nil {
			t.Errorf("Start returned %v", err)
		}
	})
}

// TestSourceFails wants the error of a source, with its name.
func TestSourceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		var n atomic.Int32
		c := unmanaged(t, "fails", counting(&n))
		src := source.Func(func(context.Context, queue) error { return boom })
		if err := c.Watch(src); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); !errors.Is(err, boom) || !strings.Contains(err.Error(), "func source") {
			t.Errorf("Start returned %v", err)
		}
	})
}

// TestSourceBlocks is CR#2997: a source that blocks in Start is named.
func TestSourceBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		c := unmanaged(t, "blocks", counting(&n), func(o *Options) { o.CacheSyncTimeout = time.Minute })
		if err := c.Watch(source.Func(func(ctx context.Context, _ queue) error { <-ctx.Done(); return nil })); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "func source") || !strings.Contains(err.Error(), "must not block") {
			t.Errorf("Start returned %v", err)
		}
	})
}

// TestStopWaits is CR#350 and CR#1427: Start returns after the reconcile that
// is under way, and no other begins.
func TestStopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began, finished atomic.Int32
		src, informer := pods(t)
		informer.Synced()
		c := unmanaged(t, "waits", reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			began.Add(1)
			time.Sleep(time.Minute)
			finished.Add(1)
			return reconcile.Result{Requeue: true}, nil
		}))
		if err := c.Watch(src); err != nil {
			t.Fatal(err)
		}
		end := begin(t, c)
		informer.Add(pod("p"))
		informer.Add(pod("q"))
		synctest.Wait()
		if err := end(); err != nil {
			t.Error(err)
		}
		if began.Load() != 1 || finished.Load() != 1 {
			t.Errorf("%d reconciles began and %d finished, want one each", began.Load(), finished.Load())
		}
	})
}

// TestLateWatch wants a source that is added to a running controller to
// deliver, and to go with it. The controller does not wait for it.
func TestLateWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		c := unmanaged(t, "late", counting(&n))
		end := begin(t, c)
		src, informer := pods(t)
		if err := c.Watch(src); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		informer.Add(pod("p"))
		synctest.Wait()
		if n.Load() != 1 {
			t.Errorf("%d reconciles, want 1", n.Load())
		}
		if err := end(); err != nil || informer.Handlers() != 0 {
			t.Errorf("Start returned %v, and %d handlers are left", err, informer.Handlers())
		}
		if err := c.Watch(nil); err == nil {
			t.Error("a nil source is accepted")
		}
		if err := c.Watch(source.Kind(nil, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{})); err == nil {
			t.Error("a source without a cache is accepted")
		}
	})
}

// TestUntil wants one watch of a running controller to be taken away, whole,
// and the others to go on.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		c := unmanaged(t, "until", counting(&n))
		stays, kept := pods(t)
		kept.Synced()
		if err := c.Watch(stays); err != nil {
			t.Fatal(err)
		}
		end := begin(t, c)
		for round := range int32(3) { // one after another, as for tenants that come and go
			goes, informer := pods(t)
			ctx, unwatch := context.WithCancel(t.Context())
			if err := c.Watch(source.Until(ctx, goes)); err != nil {
				t.Fatal(err)
			}
			informer.Synced()
			informer.Add(pod("p"))
			synctest.Wait()
			if n.Load() != 2*round+1 {
				t.Errorf("round %d: %d reconciles, want %d", round, n.Load(), 2*round+1)
			}
			unwatch()
			synctest.Wait()
			if informer.Handlers() != 0 {
				t.Errorf("round %d: %d handlers are left", round, informer.Handlers())
			}
			informer.Add(pod("q"))
			kept.Add(pod("p"))
			synctest.Wait()
			if n.Load() != 2*round+2 {
				t.Errorf("round %d: %d reconciles after the watch was taken away, want %d", round, n.Load(), 2*round+2)
			}
		}
		last, informer := pods(t)
		ctx, unwatch := context.WithCancel(t.Context())
		defer unwatch()
		if err := c.Watch(source.Until(ctx, last)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(c.sources) != 2 || len(c.term.runs) != 2 {
			t.Errorf("the controller remembers %d sources and %d runs, want the 2 that are left", len(c.sources), len(c.term.runs))
		}
		if err := end(); err != nil || kept.Handlers() != 0 || informer.Handlers() != 0 {
			t.Errorf("Start returned %v, and %d and %d handlers are left", err, kept.Handlers(), informer.Handlers())
		}
	})
}

// TestUntilBeforeSync wants a watch that is taken away before it synced, or
// before the controller started, not to hold the start up.
func TestUntilBeforeSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		c := unmanaged(t, fresh("until before sync"), counting(&n))
		never, informer := pods(t)
		ctx, unwatch := context.WithCancel(t.Context())
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := errors.Join(c.Watch(source.Until(ctx, never)), c.Watch(source.Until(over, never))); err != nil {
			t.Fatal(err)
		}
		end := begin(t, c)
		if testutil.ToFloat64(c.metrics.workers) != 0 {
			t.Error("it works before its source has synced")
		}
		unwatch()
		synctest.Wait()
		if testutil.ToFloat64(c.metrics.workers) == 0 {
			t.Error("the watch that was taken away holds the start up")
		}
		if err := end(); err != nil || informer.Handlers() != 0 {
			t.Errorf("Start returned %v, and %d handlers are left", err, informer.Handlers())
		}
		if err := errors.Join(c.Watch(source.Until[reconcile.Request](ctx, nil)), c.Watch(source.Until(nil, never))); err == nil || !strings.Contains(err.Error(), "source is nil") || !strings.Contains(err.Error(), "context is nil") {
			t.Errorf("mistakes are answered with %v", err)
		}
	})
}

// TestWarmup wants sources to be there before Start, reconciles only after it,
// and reconciles to run under Start's context.
func TestWarmup(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		yes := true
		var elected atomic.Int32
		src, informer := pods(t)
		c := unmanaged(t, "warm", reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			if ctx.Value(key{}) == "elected" {
				elected.Add(1)
			}
			return reconcile.Result{}, nil
		}), func(o *Options) { o.EnableWarmup = &yes })
		if err := c.Watch(src); err != nil {
			t.Fatal(err)
		}
		warm, cool := context.WithCancel(t.Context())
		defer cool()
		warmed := make(chan error, 1)
		go func() { warmed <- c.Warmup(warm) }()
		synctest.Wait()
		informer.Add(pod("p"))
		informer.Synced()
		if err := <-warmed; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if informer.Handlers() != 1 || elected.Load() != 0 {
			t.Errorf("after the warm-up there are %d handlers and %d reconciles", informer.Handlers(), elected.Load())
		}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "elected"))
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }()
		synctest.Wait()
		if elected.Load() != 1 || informer.Handlers() != 1 {
			t.Errorf("after Start there are %d reconciles and %d handlers", elected.Load(), informer.Handlers())
		}
		cancel()
		if err := <-ended; err != nil || informer.Handlers() != 0 {
			t.Errorf("Start returned %v, and %d handlers are left", err, informer.Handlers())
		}
		if err := begin(t, c)(); err != nil || elected.Load() != 1 {
			t.Errorf("the next start returned %v", err)
		}
	})
}

// TestWarmupEnds covers the ends of a warm-up that Start never follows, or
// follows too late.
func TestWarmupEnds(t *testing.T) {
	yes := true
	warm := func(o *Options) { o.EnableWarmup, o.CacheSyncTimeout = &yes, time.Minute }
	t.Run("off", func(t *testing.T) {
		var n atomic.Int32
		src, informer := pods(t)
		c := unmanaged(t, "off", counting(&n))
		if err := errors.Join(c.Watch(src), c.Warmup(t.Context())); err != nil || informer.Handlers() != 0 {
			t.Errorf("it warmed up: %v, %d handlers", err, informer.Handlers())
		}
	})
	t.Run("fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int32
			src, informer := pods(t)
			c := unmanaged(t, "warm fails", counting(&n), warm)
			if err := c.Watch(src); err != nil {
				t.Fatal(err)
			}
			if err := c.Warmup(t.Context()); err == nil || informer.Handlers() != 0 {
				t.Errorf("the warm-up ended with %v and %d handlers", err, informer.Handlers())
			}
		})
	})
	t.Run("Start while it fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var n, starts atomic.Int32
			c := unmanaged(t, "warm fails slowly", counting(&n), warm)
			held := 0
			c.claim = func() (func(), error) { held++; return func() { held-- }, nil }
			c.release, _ = c.claim()
			// The first run blocks, and lets go only some time after its end.
			src := source.Func(func(ctx context.Context, q queue) error {
				if starts.Add(1) == 1 {
					<-ctx.Done()
					time.Sleep(2 * time.Second)
				}
				q.Add(request("p"))
				return nil
			})
			if err := c.Watch(src); err != nil {
				t.Fatal(err)
			}
			warmed := make(chan error, 1)
			go func() { warmed <- c.Warmup(t.Context()) }()
			time.Sleep(time.Minute + time.Second)
			end := begin(t, c)
			if err := <-warmed; err == nil {
				t.Error("the warm-up succeeded")
			}
			if n.Load() != 1 || held != 1 {
				t.Errorf("%d reconciles, and the name is held %d times; want one each", n.Load(), held)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := c.Start(ctx); err == nil {
				t.Error("a running controller starts again")
			}
			if err := end(); err != nil || held != 0 {
				t.Errorf("Start returned %v, and the name is held %d times", err, held)
			}
		})
	})
	t.Run("over before Start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var n atomic.Int32
			src, informer := pods(t)
			informer.Synced()
			c := unmanaged(t, "warm over", counting(&n), warm)
			if err := c.Watch(src); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if err := c.Warmup(ctx); err != nil {
				t.Fatal(err)
			}
			cancel()
			synctest.Wait()
			if informer.Handlers() != 0 {
				t.Errorf("%d handlers are left after the warm-up", informer.Handlers())
			}
			end := begin(t, c)
			informer.Add(pod("p"))
			synctest.Wait()
			if err := end(); err != nil || n.Load() != 1 {
				t.Errorf("Start returned %v after %d reconciles", err, n.Load())
			}
		})
	})
}

// TestChannelFirstEvents is CR#942, CR#961 and CR#1343: what was sent before
// the start is not lost, and the source lives as long as the controller.
func TestChannelFirstEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		events := make(chan event.GenericEvent, 10)
		events <- event.GenericEvent{Object: pod("before")}
		c := unmanaged(t, "channel", counting(&n))
		if err := c.Watch(source.Channel(events, &handler.EnqueueRequestForObject{})); err != nil {
			t.Fatal(err)
		}
		end := begin(t, c)
		events <- event.GenericEvent{Object: pod("after")}
		synctest.Wait()
		if err := end(); err != nil || n.Load() != 2 {
			t.Errorf("Start returned %v after %d reconciles, want 2", err, n.Load())
		}
	})
}

// TestOwnQueue wants a queue of the user's own to be used, once per start.
func TestOwnQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		made := 0
		c := unmanaged(t, "own queue", counting(&n), func(o *Options) {
			o.NewQueue = func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
				made++
				if name != "own queue" || limiter == nil {
					t.Errorf("NewQueue got %q and %v", name, limiter)
				}
				return workqueue.NewTypedRateLimitingQueue(limiter)
			}
		})
		src, informer := pods(t)
		informer.Synced()
		if err := c.Watch(src); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			end := begin(t, c)
			if err := end(); err != nil {
				t.Error(err)
			}
		}
		if made != 2 {
			t.Errorf("the queue was made %d times, want 2", made)
		}
	})
}

// TestInvalidOptions wants a controller that cannot work not to be made.
func TestInvalidOptions(t *testing.T) {
	ok := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	var none *nothing
	for name, c := range map[string]struct {
		name string
		o    Options
	}{
		"no name":          {"", Options{Reconciler: ok}},
		"no reconciler":    {"c", Options{}},
		"nil reconciler":   {"c", Options{Reconciler: none}},
		"negative timeout": {"c", Options{Reconciler: ok, CacheSyncTimeout: -1}},
		"odd policy":       {"c", Options{Reconciler: ok, RetryPolicies: []RetryPolicy{{Name: "odd"}}}},
	} {
		if _, err := NewUnmanaged(c.name, c.o); err == nil {
			t.Errorf("%s: it is made", name)
		}
	}
	if _, err := New("c", nil, Options{Reconciler: ok}); err == nil {
		t.Error("it is made without a manager")
	}
}

type nothing struct{}

func (*nothing) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}
