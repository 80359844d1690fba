// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller"
	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
	"github.com/wherry-dev/wherry/manager/config"
	"github.com/wherry-dev/wherry/manager/metrics/server"
)

// quiet is how long nothing has to happen until it counts as not happening.
const quiet = 300 * time.Millisecond

// world is a namespace, and a manager that sees nothing else and is not started yet.
type world struct {
	*testing.T
	namespace string
	mgr       ctrl.Manager
	client    client.Client // straight to the server
}

func newWorld(t *testing.T, change ...func(*ctrl.Options)) *world {
	t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: strings.ToLower(t.Name()) + "-"}}
	w := &world{T: t, client: c}
	w.make(ns)
	w.namespace = ns.Name
	w.mgr = w.manager(change...)
	return w
}

func (w *world) manager(change ...func(*ctrl.Options)) ctrl.Manager {
	w.Helper()
	o := ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{CacheSyncTimeout: settle},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
	}
	for _, c := range change {
		c(&o)
	}
	mgr, err := ctrl.NewManager(cfg, o)
	if err != nil {
		w.Fatal(err)
	}
	return mgr
}

// run starts something that runs until its context ends, and returns what stops it and waits for it; the test's end does,
// too.
func (w *world) run(what string, start func(context.Context) error) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("%s ended with %v", what, err)
		}
	})
	w.Cleanup(stop)
	return stop
}

func (w *world) make(obj client.Object) {
	w.Helper()
	if err := w.client.Create(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

// touch changes an object: its labels, or only its annotations.
func (w *world) touch(obj client.Object, patch string) {
	w.Helper()
	if err := w.client.Patch(w.Context(), obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.Fatal(err)
	}
}

func (w *world) configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: labels}}
}

// secretOf makes a Secret that the named ConfigMap owns, as its controller or not. There is no such ConfigMap, as For would
// see it too; the finalizer keeps the garbage collector from taking the Secret away before a cache has listed it.
func (w *world) secretOf(name, owner string, isController bool, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: labels, Finalizers: []string{"example.com/stays"}, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: types.UID(owner + "-uid"), Controller: ptr.To(isController)},
	}}}
}

// never wants a key not to be reconciled again.
func (s *seen) never(t *testing.T, what, key string) {
	t.Helper()
	before := s.count(key)
	time.Sleep(quiet) // nothing tells that nothing comes
	if n := s.count(key); n != before {
		t.Errorf("%s: %q was reconciled %d times more", what, key, n-before)
	}
}

// more wants a key to be reconciled once more than n times.
func (s *seen) more(t *testing.T, what, key string, n int) {
	t.Helper()
	for deadline := time.Now().Add(settle); s.count(key) <= n; time.Sleep(look) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %q was reconciled %d times within %s", what, key, s.count(key), settle)
		}
	}
}

func (s *seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = nil
}

var red, blue = map[string]string{"color": "red"}, map[string]string{"color": "blue"}

func isRed(obj client.Object) bool { return obj.GetLabels()["color"] == "red" }

// TestQC3OnServer is case QC-3 with a real server behind it: what the predicates of For guard, and when predicates run.
func TestQC3OnServer(t *testing.T) {
	w := newWorld(t)
	var guarded, filtered, everyOwner, controllers seen
	var asked sync.Map
	counting := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		asked.Store(obj.GetName(), true)
		return true
	})
	onlyRed := predicate.NewPredicateFuncs(isRed)
	for name, build := range map[string]func(*ctrl.Builder) error{
		"guarded": func(b *ctrl.Builder) error {
			return b.For(&corev1.ConfigMap{}, builder.WithPredicates(onlyRed)).Owns(&corev1.Secret{}, builder.WithPredicates(counting)).Complete(&guarded)
		},
		"filtered": func(b *ctrl.Builder) error {
			return b.For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).WithEventFilter(onlyRed).Complete(&filtered)
		},
		"every-owner": func(b *ctrl.Builder) error {
			return b.For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}, builder.MatchEveryOwner).Complete(&everyOwner)
		},
		"controllers": func(b *ctrl.Builder) error {
			return b.For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(&controllers)
		},
	} {
		if err := build(ctrl.NewControllerManagedBy(w.mgr).Named(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.run("the manager", w.mgr.Start)
	w.make(w.configMap("r", red))
	w.make(w.configMap("u", blue))
	guarded.want(t, "For with a predicate", "r")
	guarded.never(t, "For with a predicate", "u")
	filtered.want(t, "WithEventFilter", "r")
	filtered.never(t, "WithEventFilter", "u")

	guarded.forget()
	filtered.forget()
	for _, s := range []*corev1.Secret{w.secretOf("of-r", "r", true, nil), w.secretOf("of-u", "u", true, nil), w.secretOf("second", "plain", false, nil), {ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "free"}}} {
		w.make(s)
	}
	guarded.want(t, "Owns beside a predicate of For", "r")
	guarded.want(t, "Owns beside a predicate of For", "u")
	filtered.never(t, "WithEventFilter judges the child itself", "r")
	everyOwner.want(t, "MatchEveryOwner", "plain")
	controllers.never(t, "Owns", "plain")
	for _, name := range []string{"of-r", "of-u", "second", "free"} {
		// It is asked on the way to another controller's queue: what was wanted above may come first.
		for deadline := time.Now().Add(settle); ; time.Sleep(look) {
			if _, ok := asked.Load(name); ok {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the predicate of Owns was not asked about %q", name)
			}
		}
	}
}

// TestForms builds controllers that see their objects in every form.
func TestForms(t *testing.T) {
	w := newWorld(t)
	asMetadata := func() client.Object {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		return m
	}
	asMap := func() client.Object {
		m := &unstructured.Unstructured{}
		m.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		return m
	}
	cases := map[string]struct {
		obj    client.Object
		opts   []builder.ForOption
		owns   []builder.OwnsOption
		passed string
	}{
		"typed":         {obj: &corev1.ConfigMap{}, passed: "*v1.ConfigMap"},
		"only-metadata": {obj: &corev1.ConfigMap{}, opts: []builder.ForOption{builder.OnlyMetadata}, owns: []builder.OwnsOption{builder.OnlyMetadata}, passed: "*v1.PartialObjectMetadata"},
		"metadata":      {obj: asMetadata(), passed: "*v1.PartialObjectMetadata"},
		"unstructured":  {obj: asMap(), passed: "*unstructured.Unstructured"},
	}
	all := map[string]*seen{}
	forms := sync.Map{}
	for name, c := range cases {
		s := &seen{}
		all[name] = s
		note := predicate.NewPredicateFuncs(func(obj client.Object) bool {
			forms.Store(name, fmt.Sprintf("%T", obj))
			return true
		})
		opts := append(slices.Clone(c.opts), builder.WithPredicates(note))
		if err := ctrl.NewControllerManagedBy(w.mgr).Named(name).For(c.obj, opts...).Owns(&corev1.Secret{}, c.owns...).Complete(s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	w.run("the manager", w.mgr.Start)
	w.make(w.configMap("m", nil))
	w.make(w.secretOf("s", "owner", true, nil))
	for name, c := range cases {
		all[name].want(t, name+": For", "m")
		all[name].want(t, name+": Owns", "owner")
		if form, _ := forms.Load(name); form != c.passed {
			t.Errorf("%s: the predicate got a %v, want %s", name, form, c.passed)
		}
	}
}

// TestTypedRequests has keys of the user's own type.
func TestTypedRequests(t *testing.T) {
	type tenant struct{ Name string }
	w := newWorld(t)
	var got sync.Map
	toTenant := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []tenant {
		return []tenant{{Name: obj.GetLabels()["tenant"]}}
	})
	err := builder.TypedControllerManagedBy[tenant](w.mgr).Named("tenants").
		Watches(&corev1.ConfigMap{}, toTenant, builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()["tenant"] != "" }))).
		WatchesMetadata(&corev1.Secret{}, toTenant).
		WatchesRawSource(source.TypedFunc[tenant](func(_ context.Context, q workqueue.TypedRateLimitingInterface[tenant]) error {
			q.Add(tenant{"raw"})
			return nil
		})).
		Complete(reconcile.TypedFunc[tenant](func(_ context.Context, key tenant) (reconcile.Result, error) {
			got.Store(key, true)
			return reconcile.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	w.run("the manager", w.mgr.Start)
	w.make(w.configMap("m", map[string]string{"tenant": "a"}))
	w.make(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "s", Labels: map[string]string{"tenant": "b"}}})
	for _, name := range []string{"a", "b", "raw"} {
		for deadline := time.Now().Add(settle); ; time.Sleep(look) {
			if _, ok := got.Load(tenant{name}); ok {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the tenant %q was not reconciled", name)
			}
		}
	}
	if _, ok := got.Load(tenant{}); ok {
		t.Error("the predicate let an object without a tenant through")
	}
}

// TestWithOptions wants the options of the builder to reach the controller: workers side by side, a rate limiter of the
// user's, a panic and a timeout contained.
func TestWithOptions(t *testing.T) {
	w := newWorld(t)
	const workers = 3
	var inside, tries atomic.Int32
	together, slow := make(chan struct{}), make(chan error, 1)
	limiter := &countingLimiter{TypedRateLimiter: workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()}
	reconciler := reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		switch {
		case req.Name == "panics" && tries.Add(1) == 1:
			panic("boom")
		case req.Name == "slow":
			<-ctx.Done()
			slow <- context.Cause(ctx)
		case strings.HasPrefix(req.Name, "side"):
			if inside.Add(1) == workers {
				close(together)
			}
			<-together
		}
		return reconcile.Result{}, nil
	})
	err := ctrl.NewControllerManagedBy(w.mgr).For(&corev1.ConfigMap{}, builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()["try"] == "yes" }))).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: limiter, ReconciliationTimeout: time.Second}).
		Complete(reconciler)
	if err != nil {
		t.Fatal(err)
	}
	w.run("the manager", w.mgr.Start)
	try := map[string]string{"try": "yes"}
	for i := range workers {
		w.make(w.configMap(fmt.Sprint("side-", i), try))
	}
	select {
	case <-together:
	case <-time.After(settle):
		t.Fatalf("%d reconciles at a time, want %d", inside.Load(), workers)
	}
	w.make(w.configMap("slow", try))
	select {
	case err := <-slow:
		if err == nil || !strings.Contains(err.Error(), "ReconciliationTimeout") {
			t.Errorf("the slow reconcile's context ended with %v", err)
		}
	case <-time.After(settle):
		t.Fatal("the slow reconcile goes on")
	}
	w.make(w.configMap("panics", try))
	for deadline := time.Now().Add(settle); tries.Load() < 2; time.Sleep(look) {
		if time.Now().After(deadline) {
			t.Fatal("a key whose reconcile panicked was not tried again")
		}
	}
	if n := limiter.asked.Load(); n != 1 {
		t.Errorf("the rate limiter was asked %d times, want once: for the key that panicked", n)
	}
}

// countingLimiter counts how often it is asked for a delay.
type countingLimiter struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	asked atomic.Int32
}

func (l *countingLimiter) When(req reconcile.Request) time.Duration {
	l.asked.Add(1)
	return l.TypedRateLimiter.When(req)
}

// TestUnmanaged runs a controller without a manager's hand, stops it and starts it again, and takes one of its watches away
// in between.
func TestUnmanaged(t *testing.T) {
	w := newWorld(t)
	w.run("the manager", w.mgr.Start)
	var s seen
	c, err := controller.NewUnmanaged("unmanaged", controller.Options{Reconciler: &s, CacheSyncTimeout: settle})
	if err != nil {
		t.Fatal(err)
	}
	watch := func(obj client.Object) source.Source {
		return source.Kind(w.mgr.GetCache(), obj, handler.EventHandler(&handler.EnqueueRequestForObject{}))
	}
	watching, unwatch := context.WithCancel(t.Context())
	defer unwatch()
	if err := errors.Join(c.Watch(watch(&corev1.ConfigMap{})), c.Watch(source.Until(watching, watch(&corev1.Secret{})))); err != nil {
		t.Fatal(err)
	}
	stop := w.run("the controller", c.Start)
	m := w.configMap("m", nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "secret"}}
	w.make(m)
	w.make(secret)
	s.want(t, "the first run", "m")
	s.want(t, "a watch for a time", "secret")

	unwatch()
	s.never(t, "a watch taken away", "secret") // what was under way is over
	n := s.count("m")
	w.touch(secret, `{"metadata":{"labels":{"a":"b"}}}`)
	w.touch(m, `{"metadata":{"labels":{"a":"b"}}}`)
	s.more(t, "the watch that stays", "m", n)
	s.never(t, "a watch taken away", "secret")

	stop()
	w.touch(m, `{"metadata":{"labels":{"a":"c"}}}`)
	s.never(t, "a stopped controller", "m")
	n, secrets := s.count("m"), s.count("secret")
	stop = w.run("the controller, again", c.Start)
	s.more(t, "the second run", "m", n)
	if got := s.count("secret"); got != secrets {
		t.Errorf("the watch that was taken away came back with the second run: %d reconciles", got-secrets)
	}
	stop()
}

// TestWarmup wants a replica that waits for the lease to have its caches filled, and to work at once when it gets it.
func TestWarmup(t *testing.T) {
	elected := func(o *ctrl.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "warm", "default"
		o.LeaderElectionReleaseOnCancel = true
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = ptr.To(15*time.Second), ptr.To(10*time.Second), ptr.To(100*time.Millisecond) // the lease is given up, not waited for
		o.Controller.EnableWarmup = ptr.To(true)
		o.Controller.SkipNameValidation = ptr.To(true)
	}
	w := newWorld(t, elected)
	var first, second seen
	if err := ctrl.NewControllerManagedBy(w.mgr).For(&corev1.ConfigMap{}).Complete(&first); err != nil {
		t.Fatal(err)
	}
	other := w.manager(elected)
	var heard atomic.Int32
	listening := predicate.NewPredicateFuncs(func(client.Object) bool {
		heard.Add(1)
		return true
	})
	if err := ctrl.NewControllerManagedBy(other).For(&corev1.ConfigMap{}, builder.WithPredicates(listening)).Complete(&second); err != nil {
		t.Fatal(err)
	}
	w.make(w.configMap("m", nil))
	stop := w.run("the first manager", w.mgr.Start)
	first.want(t, "the leader", "m")
	w.run("the second manager", other.Start)
	for deadline := time.Now().Add(settle); heard.Load() == 0; time.Sleep(look) {
		if time.Now().After(deadline) {
			t.Fatal("the source of the waiting replica was not started")
		}
	}
	second.never(t, "the waiting replica", "m")
	stop()
	second.want(t, "the new leader", "m")
}

// TestClassicQueue runs a controller on client-go's queue.
func TestClassicQueue(t *testing.T) {
	w := newWorld(t, func(o *ctrl.Options) { o.Controller.UsePriorityQueue = ptr.To(false) })
	var s seen
	if err := ctrl.NewControllerManagedBy(w.mgr).For(&corev1.ConfigMap{}).Complete(&s); err != nil {
		t.Fatal(err)
	}
	w.run("the manager", w.mgr.Start)
	w.make(w.configMap("m", nil))
	s.want(t, "the classic queue", "m")
}
