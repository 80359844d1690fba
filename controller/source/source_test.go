// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/cache/informertest"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/controllertest"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func newQueue(t *testing.T) priorityqueue.Causal[reconcile.Request] {
	t.Helper()
	q, ok := priorityqueue.New[reconcile.Request]("").(priorityqueue.Causal[reconcile.Request])
	if !ok {
		t.Fatal("the queue keeps no causes")
	}
	t.Cleanup(q.ShutDown)
	return q
}

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: version}}
}

// drain takes what is queued: name@priority and why.
func drain(q priorityqueue.Causal[reconcile.Request]) []string {
	var all []string
	for range q.Len() {
		taken, _ := q.Take()
		q.Done(taken.Key)
		line := fmt.Sprintf("%s@%d", taken.Key.Name, taken.Priority)
		causes, _ := taken.Causes()
		for _, c := range causes {
			line += fmt.Sprintf(" %s:%s", c.Event, c.Object.Name)
		}
		all = append(all, line)
	}
	return all
}

func want(t *testing.T, q priorityqueue.Causal[reconcile.Request], lines ...string) {
	t.Helper()
	synctest.Wait()
	if got := drain(q); !slices.Equal(got, lines) {
		t.Errorf("queued %q, want %q", got, lines)
	}
}

// fakes is a cache whose informers a test drives.
func fakes(t *testing.T) (*informertest.FakeInformers, *controllertest.FakeInformer) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &informertest.FakeInformers{Scheme: scheme, InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{
		corev1.SchemeGroupVersion.WithKind("Pod"): controllertest.NewFakeInformer(), // not synced
	}}
	informer, err := c.FakeInformerFor(t.Context(), &corev1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	return c, informer
}

// start starts a source and returns what stops it and waits for its end.
func start(t *testing.T, ctx context.Context, src any, q queue) (run Run, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	runner, ok := src.(TypedRunner[reconcile.Request])
	if !ok {
		t.Fatalf("%T is no runner", src)
	}
	run, err := runner.StartRun(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	return run, func() {
		cancel()
		<-run.Done()
	}
}

func TestKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, informer := fakes(t)
		q := newQueue(t)
		informer.Add(pod("there", "1"))
		notSkipped := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() != "skipped" })
		src := Kind(c, client.Object(&corev1.Pod{}), &handler.EnqueueRequestForObject{}, notSkipped, predicate.ResourceVersionChangedPredicate{})
		_, stop := start(t, t.Context(), src, q)
		synctest.Wait()

		waiting, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := src.WaitForSync(waiting); err == nil {
			t.Error("it is synced before its informer is")
		}
		informer.Synced()
		if err := src.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		want(t, q, "there@-100 initial:there")
		informer.Add(pod("p", "1"))
		informer.Add(pod("skipped", "1"))
		want(t, q, "p@0 created:p")
		informer.Update(pod("p", "1"), pod("p", "2"))
		informer.Update(pod("skipped", "1"), pod("skipped", "2"))
		want(t, q, "p@0 updated:p")
		informer.Update(pod("p", "2"), pod("p", "2")) // the second predicate drops resyncs
		want(t, q)
		informer.Delete(pod("p", "2"))
		informer.Delete(pod("skipped", "2"))
		want(t, q, "p@0 deleted:p")

		stop()
		if n := informer.Handlers(); n != 0 {
			t.Errorf("%d handlers are left after the stop", n)
		}
		informer.Add(pod("late", "1"))
		want(t, q)
	})
}

// TestKindTwice is #942 for kinds: one source serves two controllers at once,
// and one of them twice.
func TestKindTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, informer := fakes(t)
		informer.Synced()
		src := Kind(c, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{})
		one, two := newQueue(t), newQueue(t)
		_, stopOne := start(t, t.Context(), src, one)
		_, stopTwo := start(t, t.Context(), src, two)
		defer stopTwo()
		synctest.Wait()
		informer.Add(pod("p", "1"))
		want(t, one, "p@0 created:p")
		want(t, two, "p@0 created:p")
		stopOne()
		informer.Add(pod("q", "1"))
		want(t, one)
		want(t, two, "q@0 created:q")
		again, stopAgain := start(t, t.Context(), src, one)
		defer stopAgain()
		if err := again.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := drain(one); len(got) != 2 || !strings.Contains(strings.Join(got, " "), "initial:q") {
			t.Errorf("after the second start %q is queued, want both pods", got)
		}
	})
}

// flaky is a cache whose kind is missing until it is not.
type flaky struct {
	cache.Cache
	missing atomic.Bool
	asked   atomic.Int32
}

var errMissing = errors.New("no matches for kind")

func (f *flaky) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	f.asked.Add(1)
	if f.missing.Load() {
		return nil, errMissing
	}
	return f.Cache.GetInformer(ctx, obj, opts...)
}

// TestKindMissing is CR#2589 and CR#1428: a kind that is installed after the
// start is picked up soon, and until then the wait ends in time and tells why.
func TestKindMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, informer := fakes(t)
		informer.Synced()
		c := &flaky{Cache: fake}
		c.missing.Store(true)
		q := newQueue(t)
		src := Kind(c, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{})
		run, stop := start(t, t.Context(), src, q)
		defer stop()

		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		err := run.WaitForSync(ctx)
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("the wait took %s", took)
		}
		if !errors.Is(err, errMissing) || !strings.Contains(err.Error(), "*v1.Pod") {
			t.Errorf("the error is %v, want the kind and the reason", err)
		}
		if n := c.asked.Load(); n > 40 {
			t.Errorf("it asked %d times in 2 minutes", n)
		}
		began = time.Now()
		c.missing.Store(false)
		if err := run.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s to notice that the kind is there", took)
		}
		informer.Add(pod("p", "1"))
		want(t, q, "p@0 created:p")
	})
}

// refused is an informer that is never filled, and knows why.
type refused struct{ *controllertest.FakeInformer }

func (refused) LastError() error { return errors.New("pods is forbidden") }

// TestKindForbidden is pain 10: the server's refusal is in the error.
func TestKindForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, informer := fakes(t)
		for gvk := range fake.InformersByGVK {
			fake.InformersByGVK[gvk] = refused{informer}
		}
		_, stop := start(t, t.Context(), Kind(fake, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}), newQueue(t))
		stop()
		run, stop := start(t, t.Context(), Kind(fake, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}), newQueue(t))
		defer stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := run.WaitForSync(ctx); err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("the error is %v, want the server's reason", err)
		}
	})
}

// TestKindCancelled is CR#1786: a stop while waiting is no timeout.
func TestKindCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, _ := fakes(t)
		src := Kind(fake, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{})
		if err := src.WaitForSync(t.Context()); err == nil {
			t.Error("a source that was not started is synced")
		}
		run, stop := start(t, t.Context(), src, newQueue(t))
		ended := make(chan error)
		go func() { ended <- run.WaitForSync(context.Background()) }()
		synctest.Wait()
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v, want that it was cancelled", err)
		}
	})
}

// TestInvalid wants sources that cannot work to say so when they start, and
// when they are asked.
func TestInvalid(t *testing.T) {
	fake, _ := fakes(t)
	h := &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}
	events := make(chan event.GenericEvent)
	object := &handler.EnqueueRequestForObject{}
	for name, src := range map[string]Source{
		"kind, no cache":      Kind(nil, &corev1.Pod{}, h),
		"kind, no object":     Kind(fake, nil, h),
		"kind, no handler":    Kind[*corev1.Pod](fake, &corev1.Pod{}, nil),
		"kind, unknown owner": Kind(fake, client.Object(&corev1.Pod{}), handler.EnqueueRequestForOwner(runtime.NewScheme(), nil, &metav1.PartialObjectMetadata{})),
		"informer, none":      &Informer{Handler: object},
		"informer, nothing":   &Informer{},
		"channel, none":       Channel[client.Object](nil, object),
		"channel, no handler": Channel[client.Object](events, nil),
		"channel, size":       Channel(events, object, WithBufferSize[client.Object, reconcile.Request](-1)),
	} {
		if err := src.Start(t.Context(), newQueue(t)); err == nil {
			t.Errorf("%s: it starts", name)
		}
		if v, ok := src.(interface{ Validate() error }); !ok || v.Validate() == nil {
			t.Errorf("%s: it is valid", name)
		}
		if fmt.Sprint(src) == "" {
			t.Errorf("%s: it has no name", name)
		}
	}
}

// TestPanics wants what user code does wrong to be contained, and each kind
// of it logged once.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
		fake, informer := fakes(t)
		informer.Synced()
		q := newQueue(t)
		angry := predicate.NewPredicateFuncs(func(obj client.Object) bool {
			if obj.GetName() == "bad" {
				panic("predicate")
			}
			return true
		})
		mapped := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			if obj.GetName() == "worse" {
				panic("map function")
			}
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
		})
		_, stop := start(t, ctx, Kind(fake, client.Object(&corev1.Pod{}), mapped, angry), q)
		synctest.Wait()
		informer.Add(pod("bad", "1"))
		informer.Update(pod("bad", "1"), pod("bad", "2"))
		informer.Delete(pod("bad", "2"))
		want(t, q, "bad@0 created:bad updated:bad deleted:bad")
		informer.Add(pod("worse", "1"))
		informer.Delete(pod("worse", "1"))
		want(t, q)
		informer.Add(pod("good", "1"))
		want(t, q, "good@0 created:good")
		stop()
		if len(lines) != 2 || !strings.Contains(lines[0], `"bad"`) || !strings.Contains(lines[1], `"worse"`) {
			t.Errorf("the lines are %q, want one for each kind of fault, with the key", lines)
		}
	})
}

// TestInlineMarker wants a cache to deliver at once only to handlers and
// predicates of ours.
func TestInlineMarker(t *testing.T) {
	own := &handler.EnqueueRequestForObject{}
	mine := predicate.Predicate(predicate.GenerationChangedPredicate{})
	theirs := predicate.Predicate(predicate.NewPredicateFuncs(func(client.Object) bool { return true }))
	mapped := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return nil })
	for name, c := range map[string]struct {
		h    handler.EventHandler
		ps   []predicate.Predicate
		want bool
	}{
		"ours":             {own, []predicate.Predicate{mine}, true},
		"their predicate":  {own, []predicate.Predicate{mine, theirs}, false},
		"their map":        {mapped, nil, false},
		"without anything": {own, nil, true},
	} {
		if got := deliver(t.Context(), "test", c.h, c.ps, newQueue(t)).Inline(); got != c.want {
			t.Errorf("%s: inline %t, want %t", name, got, c.want)
		}
	}
}

// TestDelivery wants tombstones to be opened and objects of another type to
// be ignored.
func TestDelivery(t *testing.T) {
	var deleted []bool
	h := handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
		deleted = append(deleted, e.DeleteStateUnknown)
	}}
	d := deliver(t.Context(), "test", h, nil, newQueue(t))
	d.OnDelete(pod("p", "1"))
	d.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a/p", Obj: pod("p", "1")})
	d.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "a/p"})
	d.OnDelete("odd")
	d.OnAdd("odd", false)
	d.OnUpdate("odd", pod("p", "1"))
	d.OnUpdate(pod("p", "1"), "odd")
	if !slices.Equal(deleted, []bool{false, true}) {
		t.Errorf("the deletes are %v, want one known and one unknown", deleted)
	}
}

// TestDirect wants an event's own object to be queued as its handler would
// have: the same keys, priorities and causes.
func TestDirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		through := struct {
			handler.EnqueueRequestForObject
		}{} // not the handler itself
		for name, deliverTo := range map[string]func(*delivery[client.Object, reconcile.Request]){
			"initial":  func(d *delivery[client.Object, reconcile.Request]) { d.OnAdd(pod("p", "1"), true) },
			"created":  func(d *delivery[client.Object, reconcile.Request]) { d.OnAdd(pod("p", "1"), false) },
			"updated":  func(d *delivery[client.Object, reconcile.Request]) { d.OnUpdate(pod("p", "1"), pod("p", "2")) },
			"resynced": func(d *delivery[client.Object, reconcile.Request]) { d.OnUpdate(pod("p", "1"), pod("p", "1")) },
			"deleted":  func(d *delivery[client.Object, reconcile.Request]) { d.OnDelete(pod("p", "1")) },
			"tombstone": func(d *delivery[client.Object, reconcile.Request]) {
				d.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: pod("p", "1")})
			},
			"generic": func(d *delivery[client.Object, reconcile.Request]) {
				d.generic(event.GenericEvent{Object: pod("p", "1")})
			},
			"nothing": func(d *delivery[client.Object, reconcile.Request]) { d.generic(event.GenericEvent{}) },
		} {
			plain, direct := newQueue(t), newQueue(t)
			d := deliver[client.Object](t.Context(), "test", &through, nil, plain)
			if d.direct != nil {
				t.Fatal("a handler of another type is passed by")
			}
			deliverTo(d)
			if d = deliver[client.Object](t.Context(), "test", &handler.EnqueueRequestForObject{}, nil, direct); d.direct == nil {
				t.Fatal("the events take the long way")
			}
			deliverTo(d)
			if got, wanted := drain(direct), drain(plain); !slices.Equal(got, wanted) {
				t.Errorf("%s: queued %q, the handler queues %q", name, got, wanted)
			}
		}
	})
}

func TestInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		informer := controllertest.NewFakeInformer()
		q := newQueue(t)
		src := &Informer{Informer: informer, Handler: &handler.EnqueueRequestForObject{}, Predicates: []predicate.Predicate{predicate.ResourceVersionChangedPredicate{}}}
		run, stop := start(t, t.Context(), src, q)
		if err := run.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		informer.Add(pod("p", "1"))
		informer.Update(pod("p", "1"), pod("p", "1"))
		want(t, q, "p@0 created:p")
		stop()
		if n := informer.Handlers(); n != 0 {
			t.Errorf("%d handlers are left", n)
		}
	})
}

func TestFunc(t *testing.T) {
	boom := errors.New("boom")
	f := Func(func(context.Context, queue) error { return boom })
	if err := f.Start(t.Context(), nil); !errors.Is(err, boom) || !strings.HasPrefix(f.String(), "func source: ") {
		t.Errorf("%s: %v", f, err)
	}
}
