// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/cache/informertest"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller"
	"github.com/wherry-dev/wherry/controller/controllertest"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/config"
)

var (
	setKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	podKind = corev1.SchemeGroupVersion.WithKind("Pod")
	mapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
)

// world is a manager without a server: its informers are fed by hand.
type world struct {
	manager.Manager
	t      *testing.T
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	cache  *informertest.FakeInformers
	config config.Controller
	log    logr.Logger
	http   *http.Client
	added  []manager.Runnable

	mu   sync.Mutex
	seen []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	informers := map[schema.GroupVersionKind]toolscache.SharedIndexInformer{}
	for _, kind := range []schema.GroupVersionKind{setKind, podKind, mapKind} {
		mapper.Add(kind, meta.RESTScopeNamespace)
		informers[kind] = controllertest.NewFakeInformer(controllertest.Synced)
	}
	return &world{
		t: t, scheme: scheme, mapper: mapper, log: logr.Discard(), http: &http.Client{},
		cache: &informertest.FakeInformers{Scheme: scheme, InformersByGVK: informers},
	}
}

func (w *world) GetScheme() *runtime.Scheme              { return w.scheme }
func (w *world) GetRESTMapper() meta.RESTMapper          { return w.mapper }
func (w *world) GetCache() cache.Cache                   { return w.cache }
func (w *world) GetLogger() logr.Logger                  { return w.log }
func (w *world) GetHTTPClient() *http.Client             { return w.http }
func (w *world) GetControllerOptions() config.Controller { return w.config }
func (w *world) Add(r manager.Runnable) error            { w.added = append(w.added, r); return nil }

func (w *world) informer(kind schema.GroupVersionKind) *controllertest.FakeInformer {
	f, ok := w.cache.InformersByGVK[kind].(*controllertest.FakeInformer)
	if !ok {
		w.t.Fatalf("there is no informer of %s", kind)
	}
	return f
}

// start runs what was added; the result stops it.
func (w *world) start() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	for _, r := range w.added {
		wg.Go(func() {
			if err := r.Start(ctx); err != nil {
				w.t.Errorf("Start returned %v", err)
			}
		})
	}
	synctest.Wait()
	return func() {
		cancel()
		wg.Wait()
	}
}

// reconciler notes which keys it is given.
func (w *world) reconciler() reconcile.Func {
	return func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, req.Name)
		return reconcile.Result{}, nil
	}
}

// want compares the reconciled keys since it was called last, in order of
// their names.
func (w *world) want(what string, names ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.seen)
	slices.Sort(names)
	if !slices.Equal(w.seen, names) {
		w.t.Errorf("%s: reconciled %q, want %q", what, w.seen, names)
	}
	w.seen = nil
}

func set(name string, labels ...string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: "1", Labels: colors(labels)}}
}

func configMap(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: "1", OwnerReferences: owners}}
}

func ownedBy(name string, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(name), Controller: &controller}
}

func colors(names []string) map[string]string {
	labels := map[string]string{}
	for _, n := range names {
		labels["color"] = n
	}
	return labels
}

func red() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()["color"] == "red" })
}

// TestQC3 is case QC-3: what For's predicates guard, and when predicates run.
func TestQC3(t *testing.T) {
	asked := 0
	counting := predicate.NewPredicateFuncs(func(client.Object) bool { asked++; return true })
	for name, c := range map[string]struct {
		build func(*Builder) *Builder
		want  []string
		asked int
	}{
		"1: a predicate of For": {
			build: func(b *Builder) *Builder {
				return b.For(&appsv1.ReplicaSet{}, WithPredicates(red())).Owns(&corev1.ConfigMap{})
			},
			want: []string{"r", "r", "u"},
		},
		"2: an event filter": {
			build: func(b *Builder) *Builder {
				return b.For(&appsv1.ReplicaSet{}).Owns(&corev1.ConfigMap{}).WithEventFilter(red())
			},
			want: []string{"r"},
		},
		"3: a predicate of Owns": {
			build: func(b *Builder) *Builder {
				return b.For(&appsv1.ReplicaSet{}).Owns(&corev1.ConfigMap{}, WithPredicates(counting))
			},
			want: []string{"r", "r", "u", "u"}, asked: 3,
		},
		"filters first": {
			build: func(b *Builder) *Builder {
				return b.For(&appsv1.ReplicaSet{}, WithPredicates(counting)).WithEventFilter(red())
			},
			want: []string{"r"}, asked: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				asked = 0
				if err := c.build(ControllerManagedBy(w)).Complete(w.reconciler()); err != nil {
					t.Fatal(err)
				}
				defer w.start()()
				for _, touch := range []func(){
					func() { w.informer(setKind).Add(set("r", "red")) },
					func() { w.informer(setKind).Add(set("u", "blue")) },
					func() { w.informer(mapKind).Add(configMap("of-r", ownedBy("r", true))) },
					func() { w.informer(mapKind).Add(configMap("of-u", ownedBy("u", true))) },
					func() { w.informer(mapKind).Add(configMap("of-nobody")) },
				} {
					touch() // one at a time, so that the queue joins nothing
					synctest.Wait()
				}
				w.want(name, c.want...)
				if asked != c.asked {
					t.Errorf("the predicate was asked about %d objects, want %d", asked, c.asked)
				}
			})
		})
	}
}

// TestQC3Owners is the fourth variant of QC-3: owners that are no controller.
func TestQC3Owners(t *testing.T) {
	for name, c := range map[string]struct {
		opts []OwnsOption
		want []string
	}{
		"controller only":  {want: []string{"c"}},
		"MatchEveryOwner":  {opts: []OwnsOption{MatchEveryOwner}, want: []string{"c", "o"}},
		"OnlyMetadata too": {opts: []OwnsOption{MatchEveryOwner, OnlyMetadata}, want: []string{"c", "o"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if err := ControllerManagedBy(w).For(&appsv1.ReplicaSet{}).Owns(&corev1.ConfigMap{}, c.opts...).Complete(w.reconciler()); err != nil {
					t.Fatal(err)
				}
				defer w.start()()
				owned := configMap("m", ownedBy("c", true), ownedBy("o", false))
				if name == "OnlyMetadata too" {
					w.informer(mapKind).Add(&metav1.PartialObjectMetadata{ObjectMeta: owned.ObjectMeta})
				} else {
					w.informer(mapKind).Add(owned)
				}
				w.want(name, c.want...)
			})
		})
	}
}

// TestWatches wants every other way to watch to queue keys.
func TestWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		toName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: fmt.Sprintf("%s of %T", obj.GetName(), obj)}}}
		})
		events := make(chan event.GenericEvent, 1)
		if err := ControllerManagedBy(w).Named("watches").
			Watches(&corev1.Pod{}, toName, WithPredicates(predicate.ResourceVersionChangedPredicate{})).
			WatchesMetadata(&corev1.ConfigMap{}, toName).
			WatchesRawSource(source.Channel(events, &handler.EnqueueRequestForObject{})).
			WithEventFilter(predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() != "raw" })).
			Complete(w.reconciler()); err != nil {
			t.Fatal(err)
		}
		defer w.start()()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "1"}}
		w.informer(podKind).Add(pod)
		w.want("pod", "p of *v1.Pod")
		w.informer(podKind).Update(pod, pod)
		w.want("resync")
		w.informer(mapKind).Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "m"}})
		w.want("metadata", "m of *v1.PartialObjectMetadata")
		w.informer(podKind).Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "raw"}})
		w.want("filtered")
		events <- event.GenericEvent{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "raw"}}}
		w.want("raw sources are not filtered", "raw")
	})
}

// TestTyped wants a controller with keys of another type to work, and For and
// Owns, which make requests, to be refused.
func TestTyped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		toLength := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []int { return []int{len(obj.GetName())} })
		r := reconcile.TypedFunc[int](func(_ context.Context, n int) (reconcile.Result, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen = append(w.seen, fmt.Sprint(n))
			return reconcile.Result{}, nil
		})
		if err := TypedControllerManagedBy[int](w).Named("lengths").Watches(&corev1.ConfigMap{}, toLength).Complete(r); err != nil {
			t.Fatal(err)
		}
		stop := w.start()
		w.informer(mapKind).Add(configMap("four"))
		w.want("typed", "4")
		stop()
		err := TypedControllerManagedBy[int](w).Named("wrong").For(&appsv1.ReplicaSet{}).Owns(&corev1.ConfigMap{}).Complete(r)
		if err == nil || !strings.Contains(err.Error(), "For needs keys") || !strings.Contains(err.Error(), "Owns needs keys") {
			t.Errorf("For and Owns with keys of another type: %v", err)
		}
	})
}

// unknown is an object that is in no scheme.
type unknown struct{ corev1.Pod }

func (u *unknown) DeepCopyObject() runtime.Object { c := *u; return &c }

// TestMistakes is the table of bad input: all of it fails when the
// controller is built, and says what is wrong.
func TestMistakes(t *testing.T) {
	h := &handler.EnqueueRequestForObject{}
	nop := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	for name, c := range map[string]struct {
		build func(*Builder) error
		says  []string
	}{
		"two For":          {func(b *Builder) error { return b.For(&appsv1.ReplicaSet{}).For(&corev1.Pod{}).Complete(nop) }, []string{"For is called twice"}},
		"no watch":         {func(b *Builder) error { return b.Named("c").Complete(nop) }, []string{`"c"`, "watches nothing"}},
		"Owns without For": {func(b *Builder) error { return b.Named("c").Owns(&corev1.Pod{}).Complete(nop) }, []string{"Owns is called without For"}},
		"unknown owner":    {func(b *Builder) error { return b.For(&unknown{}).Owns(&corev1.Pod{}).Complete(nop) }, []string{"unknown"}},
		"unknown owned":    {func(b *Builder) error { return b.For(&appsv1.ReplicaSet{}).Owns(&unknown{}).Complete(nop) }, []string{"Owns", "unknown"}},
		"unknown watched":  {func(b *Builder) error { return b.Named("c").Watches(&unknown{}, h).Complete(nop) }, []string{"Watches", "unknown"}},
		"owner of a handler": {func(b *Builder) error {
			return b.Named("c").Watches(&corev1.Pod{}, handler.EnqueueRequestForOwner(runtime.NewScheme(), nil, &unknown{})).Complete(nop)
		}, []string{"unknown"}},
		"nil reconciler": {func(b *Builder) error { return b.For(&appsv1.ReplicaSet{}).Complete(nil) }, []string{"reconciler is nil"}},
		"nil function":   {func(b *Builder) error { return b.For(&appsv1.ReplicaSet{}).Complete(reconcile.Func(nil)) }, []string{"reconciler is nil"}},
		"nil For":        {func(b *Builder) error { return b.For(nil).Complete(nop) }, []string{"For is nil"}},
		"nil Owns":       {func(b *Builder) error { return b.For(&appsv1.ReplicaSet{}).Owns(nil).Complete(nop) }, []string{"Owns is nil"}},
		"nil Watches":    {func(b *Builder) error { return b.Named("c").Watches(nil, nil).Complete(nop) }, []string{"Watches is nil", "handler"}},
		"nil source":     {func(b *Builder) error { return b.Named("c").WatchesRawSource(nil).Complete(nop) }, []string{"WatchesRawSource is nil"}},
		"nil filter":     {func(b *Builder) error { return b.For(&appsv1.ReplicaSet{}).WithEventFilter(nil).Complete(nop) }, []string{"WithEventFilter is nil"}},
		"no name":        {func(b *Builder) error { return b.Watches(&corev1.Pod{}, h).Complete(nop) }, []string{"no name"}},
		"bad source": {func(b *Builder) error {
			return b.Named("c").WatchesRawSource(source.Kind(nil, client.Object(&corev1.Pod{}), h)).Complete(nop)
		}, []string{"cache is nil"}},
		"bad options": {func(b *Builder) error {
			return b.For(&appsv1.ReplicaSet{}).WithOptions(controller.Options{CacheSyncTimeout: -1}).Complete(nop)
		}, []string{"CacheSyncTimeout"}},
		"everything at once": {func(b *Builder) error { return b.For(nil).For(nil).Owns(nil).Complete(nil) }, []string{"twice", "For is nil", "Owns is nil", "reconciler is nil"}},
		"the same name twice": {func(b *Builder) error {
			b.mgr.(*world).config = config.Controller{}
			return errors.Join(b.Named("c").For(&appsv1.ReplicaSet{}).Complete(nop), ControllerManagedBy(b.mgr).Named("c").For(&corev1.Pod{}).Complete(nop))
		}, []string{"already"}},
	} {
		w := newWorld(t)
		err := c.build(ControllerManagedBy(w))
		if err == nil {
			t.Errorf("%s: it is built", name)
			continue
		}
		for _, text := range c.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: the error %q does not say %q", name, err, text)
			}
		}
	}
	if err := ControllerManagedBy(nil).For(&appsv1.ReplicaSet{}).Complete(nop); err == nil || !strings.Contains(err.Error(), "manager is nil") {
		t.Errorf("no manager: %v", err)
	}
}

// TestNamesAndLogs wants the default name and the log keys that people grep
// for.
func TestNamesAndLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var lines []string
		w.log = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		c, err := ControllerManagedBy(w).For(&appsv1.ReplicaSet{}).Build(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, reconcile.TerminalError(errors.New("boom"))
		}))
		if err != nil {
			t.Fatal(err)
		}
		if c.GetLogger().GetSink() == nil {
			t.Error("it has no logger")
		}
		defer w.start()()
		lines = nil
		w.informer(setKind).Add(set("web"))
		synctest.Wait()
		if len(lines) != 1 {
			t.Fatalf("the lines are %q", lines)
		}
		for _, want := range []string{
			`"controller"="replicaset"`, `"controllerGroup"="apps"`, `"controllerKind"="ReplicaSet"`,
			`"ReplicaSet"={"name"="web" "namespace"="a"}`, `"namespace"="a"`, `"name"="web"`, `"reconcileID"="`, `"error"="terminal error: boom"`,
		} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("the line %q lacks %s", lines[0], want)
			}
		}
	})
}

// TestLogConstructor wants the user's constructor to come first.
func TestLogConstructor(t *testing.T) {
	w := newWorld(t)
	asked := 0
	c, err := ControllerManagedBy(w).For(&appsv1.ReplicaSet{}).WithLogConstructor(func(*reconcile.Request) logr.Logger { asked++; return logr.Discard() }).Build(w.reconciler())
	if err != nil {
		t.Fatal(err)
	}
	if asked != 1 || c.GetLogger().Enabled() {
		t.Errorf("it was asked %d times", asked)
	}
}

// TestConcurrency wants the number of workers from the options, else from the
// manager's table by kind, else from its default.
func TestConcurrency(t *testing.T) {
	for name, c := range map[string]struct {
		options controller.Options
		config  config.Controller
		want    int
	}{
		"options":  {controller.Options{MaxConcurrentReconciles: 2}, config.Controller{GroupKindConcurrency: map[string]int{"ReplicaSet.apps": 3}}, 2},
		"kind":     {controller.Options{}, config.Controller{GroupKindConcurrency: map[string]int{"ReplicaSet.apps": 3}, MaxConcurrentReconciles: 4}, 3},
		"manager":  {controller.Options{}, config.Controller{GroupKindConcurrency: map[string]int{"Pod": 3}, MaxConcurrentReconciles: 4}, 4},
		"built-in": {controller.Options{}, config.Controller{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.config = c.config
				running, most := 0, 0
				if err := ControllerManagedBy(w).For(&appsv1.ReplicaSet{}).WithOptions(c.options).Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
					w.mu.Lock()
					running++
					most = max(most, running)
					w.mu.Unlock()
					time.Sleep(time.Second)
					w.mu.Lock()
					running--
					w.mu.Unlock()
					return reconcile.Result{}, nil
				})); err != nil {
					t.Fatal(err)
				}
				stop := w.start()
				for i := range 10 {
					w.informer(setKind).Add(set(fmt.Sprint(i)))
				}
				time.Sleep(time.Minute)
				stop()
				if most != c.want {
					t.Errorf("%d reconciles ran at once, want %d", most, c.want)
				}
			})
		})
	}
}

// TestWalk holds the walk from an event to Reconcile to its budget: one
// hand-off between goroutines for handlers of ours, so the event is in the
// queue when the informer's call returns.
func TestWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var taken []int
		if err := ControllerManagedBy(w).For(&appsv1.ReplicaSet{}, WithPredicates(predicate.GenerationChangedPredicate{})).Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			causes, _ := controller.CausesFromContext(ctx)
			for _, c := range causes {
				if c.Event != priorityqueue.Created || c.Object.Name != req.Name {
					t.Errorf("the cause is %v", c)
				}
				taken = append(taken, c.Count)
			}
			return reconcile.Result{}, nil
		})); err != nil {
			t.Fatal(err)
		}
		defer w.start()()
		w.informer(setKind).Add(set("web"))
		synctest.Wait()
		if !slices.Equal(taken, []int{1}) {
			t.Errorf("the reconciles had %v causes, want one with one", taken)
		}
	})
}
