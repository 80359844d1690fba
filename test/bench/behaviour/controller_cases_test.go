// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/finalizer"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// nothing is a reconciler that finds nothing to do.
var nothing = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })

// unique makes names of controllers, which controller-runtime keeps for the
// life of a process.
var unique atomic.Int64

func uniqueName(t *testing.T) string {
	return fmt.Sprintf("c%d", unique.Add(1))
}

// desk is a controller that runs without a manager, and its queue.
type desk struct {
	controller.Controller
	queue  chan queue
	cancel context.CancelFunc
	ended  chan error
}

// atWork starts a controller whose one source is the case itself.
func atWork(t *testing.T, opts controller.Options, r reconcile.Func) (*desk, queue) {
	t.Helper()
	opts.Reconciler = r
	if opts.RateLimiter == nil {
		opts.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, 50*time.Millisecond)
	}
	c, err := controller.NewUnmanaged(uniqueName(t), opts)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	d := &desk{Controller: c, queue: make(chan queue, 1), cancel: cancel, ended: make(chan error, 1)}
	must(t, c.Watch(source.Func(func(_ context.Context, q queue) error { d.queue <- q; return nil })))
	go func() { d.ended <- c.Start(ctx) }()
	t.Cleanup(cancel)
	return d, <-d.queue
}

// reconciles is a case of what follows a reconcile.
func reconciles(name, why string, opts controller.Options, run func(t *testing.T, o *outcome, opts controller.Options)) testCase {
	return testCase{"controller", name, why, func(t *testing.T, o *outcome) { run(t, o, opts) }}
}

func controllerCases() []testCase {
	return slices.Concat(resultCases(), lifeCases(), queueCases(), predicateCases(), handlerCases(), utilCases(), builderCases(), watchingCases())
}

func resultCases() []testCase {
	// answers reconciles one key, the n-th time by answer(n), until it rests.
	answers := func(name, why string, opts controller.Options, answer func(n int) (reconcile.Result, error)) testCase {
		return reconciles(name, why, opts, func(t *testing.T, o *outcome, opts controller.Options) {
			var n counter
			_, q := atWork(t, opts, func(context.Context, reconcile.Request) (reconcile.Result, error) { return answer(n.add("turn")) })
			q.Add(request("a"))
			last, rests := -1, 0
			within(patience, func() bool {
				if n.of("turn") > 0 && n.of("turn") == last {
					rests++
				} else {
					last, rests = n.of("turn"), 0
				}
				time.Sleep(quiet)
				return rests == 3 // one may be a machine that does other things
			})
			o.note("turns", n.of("turn"))
			o.note("failures remembered", q.NumRequeues(request("a")))
		})
	}
	once := func(n int, r reconcile.Result, err error) (reconcile.Result, error) {
		if n == 1 {
			return r, err
		}
		return reconcile.Result{}, nil
	}
	return []testCase{
		answers("nothing more to do", "", controller.Options{}, func(n int) (reconcile.Result, error) { return reconcile.Result{}, nil }),
		answers("an error is tried again", "", controller.Options{}, func(n int) (reconcile.Result, error) { return once(n, reconcile.Result{}, errors.New("x")) }),
		answers("a terminal error is not", "", controller.Options{}, func(n int) (reconcile.Result, error) {
			return once(n, reconcile.Result{}, reconcile.TerminalError(errors.New("x")))
		}),
		answers("a wrapped terminal error is not either", "", controller.Options{}, func(n int) (reconcile.Result, error) {
			return once(n, reconcile.Result{}, fmt.Errorf("wrapped: %w", reconcile.TerminalError(errors.New("x"))))
		}),
		answers("a terminal error after failures", "a key that will not be tried again has no failures to remember", controller.Options{}, func(n int) (reconcile.Result, error) {
			if n < 3 {
				return reconcile.Result{}, errors.New("x")
			}
			return reconcile.Result{}, reconcile.TerminalError(errors.New("x"))
		}),
		answers("requeue after a time", "", controller.Options{}, func(n int) (reconcile.Result, error) {
			return once(n, reconcile.Result{RequeueAfter: 20 * time.Millisecond}, nil)
		}),
		answers("requeue", "", controller.Options{}, func(n int) (reconcile.Result, error) { return once(n, reconcile.Result{Requeue: true}, nil) }),
		answers("an error and a time", "", controller.Options{}, func(n int) (reconcile.Result, error) {
			return once(n, reconcile.Result{RequeueAfter: time.Hour}, errors.New("x"))
		}),
		answers("requeue after failures forgets them", "", controller.Options{}, func(n int) (reconcile.Result, error) {
			switch {
			case n < 3:
				return reconcile.Result{}, errors.New("x")
			case n == 3:
				return reconcile.Result{RequeueAfter: time.Millisecond}, nil
			}
			return reconcile.Result{}, nil
		}),
		answers("a panic is an error", "", controller.Options{}, func(n int) (reconcile.Result, error) {
			if n == 1 {
				panic("x")
			}
			return reconcile.Result{}, nil
		}),
		answers("with the classic queue", "", controller.Options{UsePriorityQueue: new(false)}, func(n int) (reconcile.Result, error) {
			return once(n, reconcile.Result{}, errors.New("x"))
		}),
		reconciles("a reconcile has a time limit", "", controller.Options{ReconciliationTimeout: 30 * time.Millisecond}, func(t *testing.T, o *outcome, opts controller.Options) {
			seen := make(chan error, 10)
			_, q := atWork(t, opts, func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				<-ctx.Done()
				seen <- ctx.Err()
				return reconcile.Result{}, nil
			})
			q.Add(request("a"))
			o.note("context", <-seen)
		}),
		reconciles("what the context holds", "", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			ids := make(chan types.UID, 10)
			var logs atomic.Bool
			opts.LogConstructor = func(r *reconcile.Request) logr.Logger {
				if r != nil {
					logs.Store(true)
				}
				return logr.Discard()
			}
			_, q := atWork(t, opts, func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				log.FromContext(ctx).Info("x")
				ids <- controller.ReconcileIDFromContext(ctx)
				return reconcile.Result{}, nil
			})
			q.Add(request("a"))
			one := <-ids
			q.Add(request("b"))
			o.note("IDs differ", one != "" && one != <-ids)
			o.note("logger of the constructor", logs.Load())
		}),
	}
}

func lifeCases() []testCase {
	return []testCase{
		reconciles("a key is with one worker at a time", "", controller.Options{MaxConcurrentReconciles: 4}, func(t *testing.T, o *outcome, opts controller.Options) {
			var busy, overlaps, turns atomic.Int32
			_, q := atWork(t, opts, func(context.Context, reconcile.Request) (reconcile.Result, error) {
				if busy.Add(1) > 1 {
					overlaps.Add(1)
				}
				time.Sleep(20 * time.Millisecond) // long enough for the key to be added again meanwhile
				busy.Add(-1)
				turns.Add(1)
				return reconcile.Result{}, nil
			})
			for range 30 {
				q.Add(request("a"))
				time.Sleep(3 * time.Millisecond) // several adds for each turn
			}
			time.Sleep(quiet)
			o.note("overlaps", overlaps.Load())
			o.note("fewer turns than adds", turns.Load() < 30)
		}),
		reconciles("workers work at once", "", controller.Options{MaxConcurrentReconciles: 3}, func(t *testing.T, o *outcome, opts controller.Options) {
			var busy atomic.Int32
			leave := make(chan struct{})
			_, q := atWork(t, opts, func(context.Context, reconcile.Request) (reconcile.Result, error) {
				busy.Add(1)
				<-leave
				return reconcile.Result{}, nil
			})
			for _, n := range []string{"a", "b", "c", "d"} {
				q.Add(request(n))
			}
			within(patience, func() bool { return busy.Load() >= 3 })
			time.Sleep(quiet)
			o.note("busy", busy.Load())
			close(leave)
		}),
		reconciles("a key added while it is worked on", "", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			var n counter
			go1 := make(chan struct{})
			_, q := atWork(t, opts, func(context.Context, reconcile.Request) (reconcile.Result, error) {
				if n.add("turn") == 1 {
					<-go1
				}
				return reconcile.Result{}, nil
			})
			q.Add(request("a"))
			within(patience, func() bool { return n.of("turn") == 1 })
			for range 5 {
				q.Add(request("a"))
			}
			close(go1)
			within(patience, func() bool { return n.of("turn") > 1 })
			time.Sleep(quiet)
			o.note("turns", n.of("turn"))
		}),
		reconciles("the end waits for a reconcile", "", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			began, leave := make(chan struct{}), make(chan struct{})
			d, q := atWork(t, opts, func(context.Context, reconcile.Request) (reconcile.Result, error) {
				close(began)
				<-leave
				return reconcile.Result{}, nil
			})
			q.Add(request("a"))
			<-began
			d.cancel()
			select {
			case <-d.ended:
				o.note("waits", false)
			case <-time.After(quiet):
				o.note("waits", true)
			}
			close(leave)
			o.note("then", <-d.ended)
		}),
		reconciles("a second start", "", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			d, _ := atWork(t, opts, func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
			o.note("refused", d.Start(t.Context()) != nil)
		}),
		reconciles("a watch added while it runs", "", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			var n counter
			d, _ := atWork(t, opts, func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
				n.add(r.Name)
				return reconcile.Result{}, nil
			})
			o.note("watch", d.Watch(source.Func(func(_ context.Context, q queue) error { q.Add(request("late")); return nil })))
			o.note("reconciled", within(patience, func() bool { return n.of("late") == 1 }))
		}),
		reconciles("a source that fails to start", "", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			broken := errors.New("broken")
			opts.Reconciler = nothing
			c, err := controller.NewUnmanaged(uniqueName(t), opts)
			must(t, err)
			must(t, c.Watch(source.Func(func(context.Context, queue) error { return broken })))
			o.note("start ends with its error", errors.Is(c.Start(soon(t, patience)), broken))
		}),
		reconciles("no reconciler", "", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			_, err := controller.NewUnmanaged(uniqueName(t), opts)
			o.note("error", err)
		}),
		reconciles("no name", "", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			opts.Reconciler = nothing
			_, err := controller.NewUnmanaged("", opts)
			o.note("error", err)
		}),
		reconciles("one name in two managers", "a name is one manager's, and free again when that is gone", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			opts.Reconciler = nothing
			name := uniqueName(t)
			for _, which := range []string{"first", "second"} {
				_, err := controller.New(name, idleManager(t), opts)
				o.note(which, err)
			}
		}),
		reconciles("one name twice in a manager", "", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			opts.Reconciler = nothing
			name, mgr := uniqueName(t), idleManager(t)
			_, err := controller.New(name, mgr, opts)
			o.note("first", err)
			_, err = controller.New(name, mgr, opts)
			o.note("second", err)
			opts.SkipNameValidation = new(true)
			_, err = controller.New(name, mgr, opts)
			o.note("without the check", err)
		}),
		reconciles("events of a channel", "", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			var n counter
			d, _ := atWork(t, opts, func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
				n.add(r.Name)
				return reconcile.Result{}, nil
			})
			events := make(chan event.GenericEvent, 3)
			events <- event.GenericEvent{Object: newConfigMap("ns", "early", nil)}
			must(t, d.Watch(source.Channel(events, &handler.EnqueueRequestForObject{})))
			events <- event.GenericEvent{Object: newConfigMap("ns", "later", nil)}
			o.note("the first", within(patience, func() bool { return n.of("early") == 1 }))
			o.note("the next", within(patience, func() bool { return n.of("later") == 1 }))
		}),
		reconciles("events of a channel, with a predicate", "", controller.Options{}, func(t *testing.T, o *outcome, opts controller.Options) {
			var n counter
			d, _ := atWork(t, opts, func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
				n.add(r.Name)
				return reconcile.Result{}, nil
			})
			events := make(chan event.GenericEvent, 3)
			not := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() != "a" })
			must(t, d.Watch(source.Channel(events, &handler.EnqueueRequestForObject{}, source.WithPredicates[client.Object, reconcile.Request](not))))
			events <- event.GenericEvent{Object: newConfigMap("ns", "a", nil)}
			events <- event.GenericEvent{Object: newConfigMap("ns", "b", nil)}
			within(patience, func() bool { return n.of("b") == 1 })
			o.note("a", n.of("a"))
			o.note("b", n.of("b"))
		}),
	}
}

// idleManager is a manager that is not started.
func idleManager(t *testing.T) manager.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(rest.CopyConfig(server), ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	must(t, err)
	return mgr
}

func queueCases() []testCase {
	queued := func(name, why string, run func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string])) testCase {
		return testCase{"controller", "queue: " + name, why, func(t *testing.T, o *outcome) {
			q := priorityqueue.New[string](uniqueName(t))
			run(t, o, q)
			if !q.ShuttingDown() {
				q.ShutDown()
			}
		}}
	}
	take := func(t *testing.T, q priorityqueue.PriorityQueue[string], n int) string {
		t.Helper()
		var order []string
		for range n {
			item, priority, _ := q.GetWithPriority()
			order = append(order, fmt.Sprint(item, "@", priority))
			q.Done(item)
		}
		return strings.Join(order, " ")
	}
	prio := func(p int) priorityqueue.AddOpts { return priorityqueue.AddOpts{Priority: &p} }
	return []testCase{
		queued("by priority", "", func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string]) {
			q.AddWithOpts(prio(-1), "low")
			q.AddWithOpts(prio(5), "high")
			q.AddWithOpts(prio(0), "middle")
			within(patience, func() bool { return q.Len() == 3 })
			o.note("order", take(t, q, 3))
		}),
		queued("by arrival within a priority", "", func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string]) {
			for _, k := range []string{"c", "a", "b"} {
				q.Add(k)
			}
			within(patience, func() bool { return q.Len() == 3 })
			o.note("order", take(t, q, 3))
		}),
		queued("a higher priority wins, a lower is ignored", "", func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string]) {
			q.AddWithOpts(prio(1), "a")
			q.AddWithOpts(prio(2), "b")
			q.AddWithOpts(prio(3), "a")
			q.AddWithOpts(prio(0), "b")
			within(patience, func() bool { return q.Len() == 2 })
			o.note("order", take(t, q, 2))
			o.note("length", q.Len())
		}),
		queued("a key twice", "", func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			q.Add("a")
			o.note("order", take(t, q, 1))
			time.Sleep(50 * time.Millisecond) // the queue adds behind Add: nothing tells that no second one comes
			o.note("length", q.Len())
		}),
		queued("a delayed key waits", "", func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string]) {
			began := time.Now()
			q.AddAfter("a", 100*time.Millisecond)
			o.note("order", take(t, q, 1))
			o.note("waited", time.Since(began) >= 90*time.Millisecond)
		}),
		queued("the earlier of two times counts", "", func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string]) {
			q.AddAfter("a", time.Hour)
			q.AddAfter("a", 10*time.Millisecond)
			o.note("order", take(t, q, 1))
			q.AddAfter("b", time.Hour)
			q.Add("b")
			o.note("order", take(t, q, 1))
		}),
		queued("failures are counted and forgotten", "", func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string]) {
			q.AddRateLimited("a")
			q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, "a")
			o.note("two failures", within(patience, func() bool { return q.NumRequeues("a") == 2 }))
			q.Forget("a")
			o.note("failures", q.NumRequeues("a"))
		}),
		queued("a key in work comes again when done", "", func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			item, _ := q.Get()
			q.Add("a")
			q.Add("b")
			second, _ := q.Get()
			q.Done(item)
			third, _ := q.Get()
			o.note("order", fmt.Sprint(item, second, third))
		}),
		queued("an ended queue", "", func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string]) {
			q.ShutDown()
			_, shutdown := q.Get()
			o.note("get says so", shutdown)
			o.note("add", tried(func() { q.Add("a") }))
		}),
		queued("ended twice", "ending is idempotent, as client-go's queue is; controller-runtime closes a closed channel", func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string]) {
			q.ShutDown()
			o.note("second", tried(q.ShutDown))
		}),
		queued("ended with a drain", "what is queued is still handed out, as client-go's queue does", func(t *testing.T, o *outcome, q priorityqueue.PriorityQueue[string]) {
			q.Add("a")
			q.Add("b")
			within(patience, func() bool { return q.Len() == 2 })
			go q.ShutDownWithDrain()
			within(patience, q.ShuttingDown)
			n := 0
			for {
				item, shutdown := q.Get()
				if shutdown {
					break
				}
				n++
				q.Done(item)
			}
			o.note("handed out", n)
		}),
	}
}

func predicateCases() []testCase {
	changed := func(change func(*corev1.ConfigMap)) event.UpdateEvent {
		before := newConfigMap("ns", "a", map[string]string{"l": "1"})
		before.Generation, before.ResourceVersion, before.Annotations = 1, "1", map[string]string{"a": "1"}
		now := before.DeepCopy()
		change(now)
		return event.UpdateEvent{ObjectOld: before, ObjectNew: now}
	}
	updates := []struct {
		name string
		e    event.UpdateEvent
	}{
		{"nothing", changed(func(*corev1.ConfigMap) {})},
		{"version", changed(func(cm *corev1.ConfigMap) { cm.ResourceVersion = "2" })},
		{"generation", changed(func(cm *corev1.ConfigMap) { cm.Generation = 2 })},
		{"labels", changed(func(cm *corev1.ConfigMap) { cm.Labels = nil })},
		{"annotations", changed(func(cm *corev1.ConfigMap) { cm.Annotations = map[string]string{"a": "2"} })},
		{"no old", event.UpdateEvent{ObjectNew: newConfigMap("ns", "a", nil)}},
		{"no new", event.UpdateEvent{ObjectOld: newConfigMap("ns", "a", nil)}},
	}
	judged := func(name string, p predicate.Predicate) testCase {
		return testCase{"controller", "predicate: " + name, "", func(t *testing.T, o *outcome) {
			for _, u := range updates {
				passes := false
				if tried(func() { passes = p.Update(u.e) }) == "ok" {
					o.note(u.name, passes)
				} else {
					o.note(u.name, "panic")
				}
			}
			cm := newConfigMap("ns", "a", map[string]string{"l": "1"})
			o.note("create", p.Create(event.CreateEvent{Object: cm}))
			o.note("delete", p.Delete(event.DeleteEvent{Object: cm}))
			o.note("generic", p.Generic(event.GenericEvent{Object: cm}))
		}}
	}
	yes, no := predicate.NewPredicateFuncs(func(client.Object) bool { return true }), predicate.NewPredicateFuncs(func(client.Object) bool { return false })
	selector, err := predicate.LabelSelectorPredicate(metav1.LabelSelector{MatchLabels: map[string]string{"l": "1"}})
	if err != nil {
		panic(err)
	}
	return []testCase{
		judged("version changed", predicate.ResourceVersionChangedPredicate{}),
		judged("generation changed", predicate.GenerationChangedPredicate{}),
		judged("labels changed", predicate.LabelChangedPredicate{}),
		judged("annotations changed", predicate.AnnotationChangedPredicate{}),
		judged("funcs without any", predicate.Funcs{}),
		judged("and", predicate.And[client.Object](yes, no)),
		judged("or", predicate.Or[client.Object](yes, no)),
		judged("not", predicate.Not[client.Object](no)),
		judged("labels selected", selector),
	}
}

// added notes what a handler queues.
type added struct {
	queue
	what []string
}

func (a *added) Add(r reconcile.Request) { a.what = append(a.what, r.String()) }

// addedWithPriority is added as a priority queue.
type addedWithPriority struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	what []string
}

func (a *addedWithPriority) Add(r reconcile.Request) { a.AddWithOpts(priorityqueue.AddOpts{}, r) }

func (a *addedWithPriority) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	for _, r := range items {
		p := 0
		if o.Priority != nil {
			p = *o.Priority
		}
		a.what = append(a.what, fmt.Sprint(r, "@", p))
	}
}

func handlerCases() []testCase {
	owned := func(owners ...metav1.OwnerReference) client.Object {
		cm := newConfigMap("ns", "a", nil)
		cm.OwnerReferences = owners
		return cm
	}
	rs := func(name string, controls bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(name), Controller: &controls}
	}
	ask := func(name, why string, make func(c client.Client) handler.EventHandler, objects ...client.Object) testCase {
		return testCase{"controller", "handler: " + name, why, func(t *testing.T, o *outcome) {
			h := make(fake.NewClientBuilder().Build())
			for i, obj := range objects {
				var q added
				h.Create(t.Context(), event.CreateEvent{Object: obj}, &q)
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: obj, ObjectNew: obj}, &q)
				h.Delete(t.Context(), event.DeleteEvent{Object: obj}, &q)
				h.Generic(t.Context(), event.GenericEvent{Object: obj}, &q)
				slices.Sort(q.what)
				o.note(fmt.Sprint("object ", i), q.what)
			}
		}}
	}
	return []testCase{
		ask("the object", "", func(client.Client) handler.EventHandler { return &handler.EnqueueRequestForObject{} }, newConfigMap("ns", "a", nil), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}),
		ask("its owners", "", func(c client.Client) handler.EventHandler {
			return handler.EnqueueRequestForOwner(c.Scheme(), c.RESTMapper(), &appsv1.ReplicaSet{})
		}, owned(rs("x", true), rs("y", false)), owned(), owned(metav1.OwnerReference{APIVersion: "apps/v1beta1", Kind: "ReplicaSet", Name: "z"}), owned(metav1.OwnerReference{APIVersion: "v1", Kind: "ReplicaSet", Name: "z"})),
		ask("its controller", "", func(c client.Client) handler.EventHandler {
			return handler.EnqueueRequestForOwner(c.Scheme(), c.RESTMapper(), &appsv1.ReplicaSet{}, handler.OnlyControllerOwner())
		}, owned(rs("x", true), rs("y", false)), owned(rs("y", false))),
		ask("what a function names", "", func(client.Client) handler.EventHandler {
			return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
				return []reconcile.Request{request("x"), request("x"), request(obj.GetName())}
			})
		}, newConfigMap("ns", "a", nil)),
		ask("funcs without any", "", func(client.Client) handler.EventHandler { return handler.Funcs{} }, newConfigMap("ns", "a", nil)),
		{"controller", "handler: an event without an object", "", func(t *testing.T, o *outcome) {
			var q added
			h := &handler.EnqueueRequestForObject{}
			h.Create(t.Context(), event.CreateEvent{}, &q)
			h.Update(t.Context(), event.UpdateEvent{}, &q)
			h.Delete(t.Context(), event.DeleteEvent{}, &q)
			o.note("queued", q.what)
		}},
		{"controller", "handler: an update that renames", "", func(t *testing.T, o *outcome) {
			var q added
			(&handler.EnqueueRequestForObject{}).Update(t.Context(), event.UpdateEvent{ObjectOld: newConfigMap("ns", "old", nil), ObjectNew: newConfigMap("ns", "new", nil)}, &q)
			o.note("queued", q.what)
		}},
		{"controller", "handler: priorities", "", func(t *testing.T, o *outcome) {
			var q addedWithPriority
			h := &handler.EnqueueRequestForObject{}
			cm := newConfigMap("ns", "a", nil)
			h.Create(t.Context(), event.CreateEvent{Object: cm, IsInInitialList: true}, &q)
			h.Create(t.Context(), event.CreateEvent{Object: cm}, &q)
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: cm, ObjectNew: cm}, &q)
			now := cm.DeepCopy()
			now.ResourceVersion = "2"
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: cm, ObjectNew: now}, &q)
			o.note("queued", q.what)
		}},
	}
}

type finalizerFunc func(context.Context, client.Object) (finalizer.Result, error)

func (f finalizerFunc) Finalize(ctx context.Context, obj client.Object) (finalizer.Result, error) {
	return f(ctx, obj)
}

func utilCases() []testCase {
	owner := func(name string) *corev1.ConfigMap {
		cm := newConfigMap("ns", name, nil)
		cm.UID = types.UID(name)
		return cm
	}
	return []testCase{
		{"controller", "util: controller references", "", func(t *testing.T, o *outcome) {
			cm := newConfigMap("ns", "a", nil)
			o.note("set", controllerutil.SetControllerReference(owner("x"), cm, scheme.Scheme))
			o.note("again", controllerutil.SetControllerReference(owner("x"), cm, scheme.Scheme))
			var owned *controllerutil.AlreadyOwnedError
			o.note("another's is refused", errors.As(controllerutil.SetControllerReference(owner("y"), cm, scheme.Scheme), &owned))
			o.note("owner beside it", controllerutil.SetOwnerReference(owner("y"), cm, scheme.Scheme))
			o.note("references", len(cm.OwnerReferences))
			o.note("blocks deletion", fmt.Sprint(*cm.OwnerReferences[0].BlockOwnerDeletion, cm.OwnerReferences[1].BlockOwnerDeletion == nil))
			has, err := controllerutil.HasOwnerReference(cm.OwnerReferences, owner("y"), scheme.Scheme)
			o.note("has", fmt.Sprint(has, " ", verdict(err)))
			o.note("remove", controllerutil.RemoveOwnerReference(owner("y"), cm, scheme.Scheme))
			o.note("remove again", controllerutil.RemoveOwnerReference(owner("y"), cm, scheme.Scheme))
			o.note("remove the controller", controllerutil.RemoveControllerReference(owner("x"), cm, scheme.Scheme))
			o.note("has a controller", controllerutil.HasControllerReference(cm))
		}},
		{"controller", "util: owners elsewhere", "", func(t *testing.T, o *outcome) {
			far := owner("x")
			far.Namespace = "far"
			o.note("of another namespace", controllerutil.SetControllerReference(far, newConfigMap("ns", "a", nil), scheme.Scheme))
			o.note("a namespaced one of a cluster-scoped object", controllerutil.SetControllerReference(far, &corev1.Node{}, scheme.Scheme))
			o.note("a cluster-scoped one", controllerutil.SetControllerReference(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n"}}, newConfigMap("ns", "a", nil), scheme.Scheme))
			o.note("of an unknown type", controllerutil.SetControllerReference(&foreign{}, newConfigMap("ns", "a", nil), scheme.Scheme))
		}},
		{"controller", "util: finalizers", "", func(t *testing.T, o *outcome) {
			cm := newConfigMap("ns", "a", nil)
			o.note("add", controllerutil.AddFinalizer(cm, "f"))
			o.note("add again", controllerutil.AddFinalizer(cm, "f"))
			o.note("contains", controllerutil.ContainsFinalizer(cm, "f"))
			o.note("remove", controllerutil.RemoveFinalizer(cm, "f"))
			o.note("remove again", controllerutil.RemoveFinalizer(cm, "f"))
		}},
		{"controller", "util: create or update", "", func(t *testing.T, o *outcome) {
			c := fake.NewClientBuilder().Build()
			cm := newConfigMap("ns", "a", nil)
			for _, value := range []string{"1", "1", "2"} {
				result, err := controllerutil.CreateOrUpdate(t.Context(), c, cm, func() error { cm.Data = map[string]string{"k": value}; return nil })
				o.note(string(result), err)
			}
			_, err := controllerutil.CreateOrUpdate(t.Context(), c, cm, func() error { cm.Name = "b"; return nil })
			o.note("a mutation that renames", err)
		}},
		{"controller", "util: create or patch", "", func(t *testing.T, o *outcome) {
			p := pod("ns", "a")
			c := fake.NewClientBuilder().WithStatusSubresource(p).Build()
			for i, change := range []func(){func() {}, func() {}, func() { p.Labels = map[string]string{"l": "1"} }, func() { p.Status.Reason = "x" },
				func() { p.Labels, p.Status.Reason = map[string]string{"l": "2"}, "y" }} {
				result, err := controllerutil.CreateOrPatch(t.Context(), c, p, func() error { change(); return nil })
				o.note(fmt.Sprint(i, " ", result), err)
			}
		}},
		{"controller", "finalizers: run and leave", "", func(t *testing.T, o *outcome) {
			f := finalizer.NewFinalizers()
			o.note("register", f.Register("f", finalizerFunc(func(context.Context, client.Object) (finalizer.Result, error) {
				return finalizer.Result{StatusUpdated: true}, nil
			})))
			o.note("again", f.Register("f", finalizerFunc(nil)))
			cm := newConfigMap("ns", "a", nil)
			r, err := f.Finalize(t.Context(), cm)
			o.note("living object", fmt.Sprint(r, verdict(err), cm.Finalizers))
			cm.DeletionTimestamp = new(metav1.Now())
			r, err = f.Finalize(t.Context(), cm)
			o.note("ending object", fmt.Sprint(r, verdict(err), cm.Finalizers))
		}},
		{"controller", "finalizers: a failing one stays", "", func(t *testing.T, o *outcome) {
			f := finalizer.NewFinalizers()
			must(t, f.Register("bad", finalizerFunc(func(context.Context, client.Object) (finalizer.Result, error) {
				return finalizer.Result{}, errors.New("x")
			})))
			must(t, f.Register("good", finalizerFunc(func(context.Context, client.Object) (finalizer.Result, error) { return finalizer.Result{}, nil })))
			cm := newConfigMap("ns", "a", nil)
			cm.Finalizers, cm.DeletionTimestamp = []string{"bad", "good"}, new(metav1.Now())
			_, err := f.Finalize(t.Context(), cm)
			o.note("error", err)
			o.note("left", cm.Finalizers)
		}},
		{"controller", "finalizers: order", "the order of the object's own list, every time; controller-runtime's is a map's", func(t *testing.T, o *outcome) {
			names := []string{"f", "b", "d", "a", "e", "c", "g", "h"}
			same := true
			for range 20 {
				var order sequence
				f := finalizer.NewFinalizers()
				for _, n := range names {
					must(t, f.Register(n, finalizerFunc(func(context.Context, client.Object) (finalizer.Result, error) {
						order.add(n)
						return finalizer.Result{}, nil
					})))
				}
				cm := newConfigMap("ns", "a", nil)
				cm.Finalizers, cm.DeletionTimestamp = slices.Clone(names), new(metav1.Now())
				_, err := f.Finalize(t.Context(), cm)
				must(t, err)
				same = same && order.String() == strings.Join(names, ", ")
			}
			o.note("as listed, 20 times", same)
		}},
	}
}

func builderCases() []testCase {
	explained := func(name, why string, make func(b *builder.Builder) *builder.Builder) testCase {
		return testCase{"controller", "builder: " + name, why, func(t *testing.T, o *outcome) {
			_, err := make(ctrl.NewControllerManagedBy(idleManager(t))).Build(nothing)
			o.note("error", err)
		}}
	}
	built := func(name string, make func(b *builder.Builder) *builder.Builder) testCase {
		return explained(name, "", make)
	}
	cm := &corev1.ConfigMap{}
	return []testCase{
		built("nothing to watch", func(b *builder.Builder) *builder.Builder { return b }),
		built("a name and nothing to watch", func(b *builder.Builder) *builder.Builder { return b.Named(uniqueName(nil)) }),
		built("a kind", func(b *builder.Builder) *builder.Builder { return b.For(cm).Named(uniqueName(nil)) }),
		built("two kinds", func(b *builder.Builder) *builder.Builder { return b.For(cm).For(&corev1.Pod{}) }),
		built("owned kinds without an owner", func(b *builder.Builder) *builder.Builder { return b.Owns(cm).Named(uniqueName(nil)) }),
		built("a watch and a name", func(b *builder.Builder) *builder.Builder {
			return b.Watches(cm, &handler.EnqueueRequestForObject{}).Named(uniqueName(nil))
		}),
		built("a watch without a name", func(b *builder.Builder) *builder.Builder {
			return b.Watches(cm, &handler.EnqueueRequestForObject{})
		}),
		explained("a kind that the scheme does not know", "the error says which call of the builder was given it, and joins all mistakes", func(b *builder.Builder) *builder.Builder { return b.For(&foreign{}).Named(uniqueName(nil)) }),
		built("a raw source and a name", func(b *builder.Builder) *builder.Builder {
			return b.WatchesRawSource(source.Func(func(context.Context, queue) error { return nil })).Named(uniqueName(nil))
		}),
		{"controller", "builder: no reconciler", "", func(t *testing.T, o *outcome) {
			_, err := ctrl.NewControllerManagedBy(idleManager(t)).For(cm).Named(uniqueName(t)).Build(nil)
			o.note("error", err)
		}},
	}
}

// watching is a case that has a manager with a controller made by the builder,
// in a namespace of its own.
func watching(name, why string, make func(b *builder.Builder) *builder.Builder, run func(t *testing.T, o *outcome, c client.Client, ns string, n *counter)) testCase {
	return testCase{"controller", name, why, func(t *testing.T, o *outcome) {
		ns := namespace(t)
		mgr, err := ctrl.NewManager(rest.CopyConfig(server), ctrl.Options{
			Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}},
		})
		must(t, err)
		var n counter
		r := reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			n.add(r.Name)
			return reconcile.Result{}, nil
		})
		must(t, make(ctrl.NewControllerManagedBy(mgr).Named(uniqueName(t))).Complete(r))
		start(t, mgr)
		run(t, o, newClient(t), ns, &n)
	}}
}

// start starts a manager that ends with the case.
func start(t *testing.T, mgr manager.Manager) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	stop = func() error {
		cancel()
		if stopped {
			return nil
		}
		stopped = true
		return <-ended
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

func watchingCases() []testCase {
	soonAt := func(n *counter, name string, times int) bool {
		return within(patience, func() bool { return n.of(name) >= times })
	}
	return []testCase{
		watching("a kind: created, changed, deleted", "", func(b *builder.Builder) *builder.Builder { return b.For(&corev1.ConfigMap{}) }, func(t *testing.T, o *outcome, c client.Client, ns string, n *counter) {
			cm := newConfigMap(ns, "a", nil)
			must(t, c.Create(t.Context(), cm))
			o.note("created", soonAt(n, "a", 1))
			cm.Data["new"] = "1"
			must(t, c.Update(t.Context(), cm))
			o.note("changed", soonAt(n, "a", 2))
			must(t, c.Delete(t.Context(), cm))
			o.note("deleted", soonAt(n, "a", 3))
		}),
		watching("a kind with a predicate", "", func(b *builder.Builder) *builder.Builder {
			return b.For(&corev1.ConfigMap{}, builder.WithPredicates(predicate.LabelChangedPredicate{}))
		}, func(t *testing.T, o *outcome, c client.Client, ns string, n *counter) {
			cm := newConfigMap(ns, "a", nil)
			must(t, c.Create(t.Context(), cm))
			o.note("created", soonAt(n, "a", 1))
			cm.Data["new"] = "1"
			must(t, c.Update(t.Context(), cm))
			time.Sleep(quiet)
			o.note("turns after a change of data", n.of("a"))
			cm.Labels = map[string]string{"l": "1"}
			must(t, c.Update(t.Context(), cm))
			o.note("labels changed", soonAt(n, "a", 2))
		}),
		watching("an owned kind", "", func(b *builder.Builder) *builder.Builder {
			never := predicate.NewPredicateFuncs(func(client.Object) bool { return false })
			return b.For(&appsv1.ReplicaSet{}, builder.WithPredicates(never)).Owns(&corev1.ConfigMap{})
		}, func(t *testing.T, o *outcome, c client.Client, ns string, n *counter) {
			rs := replicaSet(ns, "owner")
			must(t, c.Create(t.Context(), rs))
			cm := newConfigMap(ns, "owned", nil)
			must(t, controllerutil.SetControllerReference(rs, cm, scheme.Scheme))
			must(t, c.Create(t.Context(), cm))
			o.note("the owner", soonAt(n, "owner", 1))
			o.note("the owned", n.of("owned"))
		}),
		watching("a kind as metadata only", "", func(b *builder.Builder) *builder.Builder {
			return b.For(&corev1.ConfigMap{}, builder.OnlyMetadata)
		}, func(t *testing.T, o *outcome, c client.Client, ns string, n *counter) {
			must(t, c.Create(t.Context(), newConfigMap(ns, "a", nil)))
			o.note("created", soonAt(n, "a", 1))
		}),
		watching("a custom kind", "", func(b *builder.Builder) *builder.Builder { return b.For(widget("", "")) }, func(t *testing.T, o *outcome, c client.Client, ns string, n *counter) {
			must(t, c.Create(t.Context(), widget(ns, "w")))
			o.note("created", soonAt(n, "w", 1))
		}),
		watching("another kind by a function", "", func(b *builder.Builder) *builder.Builder {
			return b.For(&corev1.ConfigMap{}).Watches(&corev1.ServiceAccount{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "by-" + obj.GetName()}}}
			}))
		}, func(t *testing.T, o *outcome, c client.Client, ns string, n *counter) {
			must(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sa"}}))
			o.note("mapped", soonAt(n, "by-sa", 1))
		}),
		{"controller", "a kind that the server does not have", "", func(t *testing.T, o *outcome) {
			mgr, err := ctrl.NewManager(rest.CopyConfig(server), ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
			must(t, err)
			gadget := widget("", "")
			gadget.SetKind("Gadget")
			must(t, ctrl.NewControllerManagedBy(mgr).Named(uniqueName(t)).WithOptions(controller.Options{CacheSyncTimeout: time.Second}).For(gadget).
				Complete(nothing))
			ctx := soon(t, patience)
			err = mgr.Start(ctx)
			o.note("start fails before the end of the case", err != nil && ctx.Err() == nil)
		}},
	}
}
