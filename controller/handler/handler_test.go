// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func pod(name string, owners ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: "1", OwnerReferences: owners}}
}

func newer(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.ResourceVersion = "2"
	return p
}

// queued runs handle on a new queue and lists what is queued: name@priority.
func queued(t *testing.T, handle func(context.Context, queue)) []string {
	t.Helper()
	q := priorityqueue.New[reconcile.Request]("")
	defer q.ShutDown()
	handle(t.Context(), q)
	var all []string
	for range q.Len() {
		req, priority, _ := q.GetWithPriority()
		all = append(all, fmt.Sprintf("%s@%d", req, priority))
		q.Done(req)
	}
	return all
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: queued %v, want %v", what, got, want)
	}
}

// everyEvent shows what a handler queues for each kind of event about p.
func everyEvent(t *testing.T, h EventHandler, p *corev1.Pod) map[string][]string {
	t.Helper()
	return map[string][]string{
		"initial": queued(t, func(ctx context.Context, q queue) {
			h.Create(ctx, event.CreateEvent{Object: p, IsInInitialList: true}, q)
		}),
		"create": queued(t, func(ctx context.Context, q queue) { h.Create(ctx, event.CreateEvent{Object: p}, q) }),
		"update": queued(t, func(ctx context.Context, q queue) {
			h.Update(ctx, event.UpdateEvent{ObjectOld: p, ObjectNew: newer(p)}, q)
		}),
		"resync": queued(t, func(ctx context.Context, q queue) {
			h.Update(ctx, event.UpdateEvent{ObjectOld: p, ObjectNew: p}, q)
		}),
		"delete":  queued(t, func(ctx context.Context, q queue) { h.Delete(ctx, event.DeleteEvent{Object: p}, q) }),
		"generic": queued(t, func(ctx context.Context, q queue) { h.Generic(ctx, event.GenericEvent{Object: p}, q) }),
	}
}

// TestPriorities wants every handler to queue with low priority for the
// initial list and for resyncs, and only for these.
func TestPriorities(t *testing.T) {
	add := func(_ context.Context, obj client.Object, q queue) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	}
	funcs := Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, e.Object, q) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, e.ObjectNew, q) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, e.Object, q) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { add(ctx, e.Object, q) },
	}
	p := pod("p", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "p"})
	for name, h := range map[string]EventHandler{
		"object": &EnqueueRequestForObject{},
		"owner":  EnqueueRequestForOwner(scheme(t), mapper(nil), &appsv1.ReplicaSet{}),
		"map func": EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
		}),
		"funcs":   funcs,
		"wrapped": WithLowPriorityWhenUnchanged[client.Object, reconcile.Request](plain{funcs}),
	} {
		t.Run(name, func(t *testing.T) {
			for e, got := range everyEvent(t, h, p) {
				switch e {
				case "initial", "resync":
					want(t, e, got, "a/p@-100")
				default:
					want(t, e, got, "a/p@0")
				}
			}
		})
	}
}

// plain is a user's handler: it embeds ours, and nothing is known about it.
type plain struct{ EventHandler }

// TestPlainHandlersKeepTheirPriority wants a handler of a user's own type not
// to be lowered unless it is asked for.
func TestPlainHandlersKeepTheirPriority(t *testing.T) {
	h := userHandler{}
	want(t, "initial", queued(t, func(ctx context.Context, q queue) {
		h.Create(ctx, event.CreateEvent{Object: pod("p"), IsInInitialList: true}, q)
	}), "a/p@0")
	low := WithLowPriorityWhenUnchanged[client.Object, reconcile.Request](h)
	want(t, "initial, wrapped", queued(t, func(ctx context.Context, q queue) {
		low.Create(ctx, event.CreateEvent{Object: pod("p"), IsInInitialList: true}, q)
	}), "a/p@-100")
}

type userHandler struct{ Funcs }

func (userHandler) Create(_ context.Context, e event.CreateEvent, q queue) {
	q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
}

// TestLowered wants every way to add to be lowered, and an own priority kept.
func TestLowered(t *testing.T) {
	five := 5
	for name, add := range map[string]func(queue){
		"Add":      func(q queue) { q.Add(request("k")) },
		"AddAfter": func(q queue) { q.AddAfter(request("k"), -time.Second) },
		"AddWithOpts": func(q queue) {
			q.(priorityqueue.PriorityQueue[reconcile.Request]).AddWithOpts(priorityqueue.AddOpts{}, request("k"))
		},
	} {
		h := Funcs{CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { add(q) }}
		want(t, name, queued(t, func(ctx context.Context, q queue) {
			h.Create(ctx, event.CreateEvent{IsInInitialList: true}, q)
		}), "a/k@-100")
	}
	h := Funcs{CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) {
		q.(priorityqueue.PriorityQueue[reconcile.Request]).AddWithOpts(priorityqueue.AddOpts{Priority: &five}, request("k"))
	}}
	want(t, "own priority", queued(t, func(ctx context.Context, q queue) {
		h.Create(ctx, event.CreateEvent{IsInInitialList: true}, q)
	}), "a/k@5")
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: name}}
}

// TestWithoutObject wants events without objects to be ignored.
func TestWithoutObject(t *testing.T) {
	var none *corev1.Pod
	h := &EnqueueRequestForObject{}
	want(t, "create", queued(t, func(ctx context.Context, q queue) { h.Create(ctx, event.CreateEvent{Object: none}, q) }))
	want(t, "delete", queued(t, func(ctx context.Context, q queue) { h.Delete(ctx, event.DeleteEvent{}, q) }))
	want(t, "generic", queued(t, func(ctx context.Context, q queue) { h.Generic(ctx, event.GenericEvent{}, q) }))
	want(t, "update", queued(t, func(ctx context.Context, q queue) { h.Update(ctx, event.UpdateEvent{}, q) }))
	want(t, "update, old only", queued(t, func(ctx context.Context, q queue) {
		h.Update(ctx, event.UpdateEvent{ObjectOld: pod("p")}, q)
	}), "a/p@0")
}

// TestMapFunc wants a map function to be asked about both objects of an
// update, and every key queued once, in order.
func TestMapFunc(t *testing.T) {
	h := EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		reqs := []reconcile.Request{request("both"), request(obj.GetName()), request("both")}
		if obj.GetLabels()["many"] != "" {
			for i := range 2 * fewKeys {
				reqs = append(reqs, request(fmt.Sprint(i%3)))
			}
		}
		return reqs
	})
	want(t, "update", queued(t, func(ctx context.Context, q queue) {
		h.Update(ctx, event.UpdateEvent{ObjectOld: pod("old"), ObjectNew: newer(pod("new"))}, q)
	}), "a/both@0", "a/old@0", "a/new@0")
	many := pod("p")
	many.Labels = map[string]string{"many": "1"}
	want(t, "many", queued(t, func(ctx context.Context, q queue) { h.Create(ctx, event.CreateEvent{Object: many}, q) }),
		"a/both@0", "a/p@0", "a/0@0", "a/1@0", "a/2@0")
	none := EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return nil })
	want(t, "none", queued(t, func(ctx context.Context, q queue) { none.Create(ctx, event.CreateEvent{Object: many}, q) }))
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(s), corev1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// countingMapper counts how often it is asked, and fails while err is set.
type countingMapper struct {
	meta.RESTMapper
	asked int
	err   error
}

func (m *countingMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.asked++
	if m.err != nil {
		return nil, m.err
	}
	return m.RESTMapper.RESTMapping(gk, versions...)
}

func mapper(err error) *countingMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	return &countingMapper{RESTMapper: m, err: err}
}

func ref(apiVersion, kind, name string, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, Controller: &controller}
}

// TestOwner wants owners to be told apart by group, kind and role, whatever
// their version.
func TestOwner(t *testing.T) {
	p := pod("p",
		ref("apps/v1", "ReplicaSet", "controls", true),
		ref("apps/v1beta2", "ReplicaSet", "owns", false),
		ref("apps/v1", "Deployment", "kind", false),
		ref("example.com/v1", "ReplicaSet", "group", false),
		ref("v1", "Node", "node", false),
		ref("v1", "ReplicaSet", "core", false),
	)
	for name, c := range map[string]struct {
		owner client.Object
		opts  []OwnerOption
		want  []string
	}{
		"all":             {&appsv1.ReplicaSet{}, nil, []string{"a/controls@0", "a/owns@0"}},
		"controller only": {&appsv1.ReplicaSet{}, []OwnerOption{OnlyControllerOwner()}, []string{"a/controls@0"}},
		"cluster scope":   {&corev1.Node{}, nil, []string{"/node@0"}},
	} {
		h := EnqueueRequestForOwner(scheme(t), mapper(nil), c.owner, c.opts...)
		want(t, name, everyEvent(t, h, p)["create"], c.want...)
	}
}

// TestOwnerChanged wants the owner before and the owner after to be told.
func TestOwnerChanged(t *testing.T) {
	h := EnqueueRequestForOwner(scheme(t), mapper(nil), &appsv1.ReplicaSet{})
	var nobody *corev1.Pod
	want(t, "moved", queued(t, func(ctx context.Context, q queue) {
		h.Update(ctx, event.UpdateEvent{
			ObjectOld: pod("p", ref("apps/v1", "ReplicaSet", "one", true)),
			ObjectNew: newer(pod("p", ref("apps/v1", "ReplicaSet", "two", true))),
		}, q)
	}), "a/one@0", "a/two@0")
	want(t, "without objects", queued(t, func(ctx context.Context, q queue) {
		h.Update(ctx, event.UpdateEvent{ObjectOld: nobody}, q)
	}))
}

// TestOwnerScope wants the mapper to be asked once, and again only after an
// error.
func TestOwnerScope(t *testing.T) {
	m := mapper(errors.New("not yet"))
	h := EnqueueRequestForOwner(scheme(t), m, &appsv1.ReplicaSet{})
	p := pod("p", ref("apps/v1", "ReplicaSet", "r", true))
	if err := Prepare(h); !errors.Is(err, m.err) {
		t.Errorf("Prepare: %v, want the mapper's error", err)
	}
	want(t, "unresolved", queued(t, func(ctx context.Context, q queue) { h.Create(ctx, event.CreateEvent{Object: p}, q) }))
	m.err, m.asked = nil, 0
	for range 3 {
		if err := Prepare(h); err != nil {
			t.Error(err)
		}
		want(t, "resolved", queued(t, func(ctx context.Context, q queue) { h.Create(ctx, event.CreateEvent{Object: p}, q) }), "a/r@0")
	}
	if m.asked != 1 {
		t.Errorf("the mapper was asked %d times, want once", m.asked)
	}
}

// TestOwnerInvalid wants an owner kind that nobody knows to be refused.
func TestOwnerInvalid(t *testing.T) {
	unknown := &metav1.PartialObjectMetadata{}
	for name, h := range map[string]EventHandler{
		"not in the scheme": EnqueueRequestForOwner(runtime.NewScheme(), mapper(nil), unknown),
		"nil":               EnqueueRequestForOwner(scheme(t), mapper(nil), nil),
		"wrapped":           WithLowPriorityWhenUnchanged(EnqueueRequestForOwner(runtime.NewScheme(), mapper(nil), unknown)),
	} {
		if Validate(h) == nil || Prepare(h) == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
	if err := Validate(&EnqueueRequestForObject{}); err != nil {
		t.Error(err)
	}
}

// TestPlainQueue wants handlers to work with a queue without priorities.
func TestPlainQueue(t *testing.T) {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedItemBasedRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	h := &EnqueueRequestForObject{}
	h.Create(t.Context(), event.CreateEvent{Object: pod("p"), IsInInitialList: true}, q)
	EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{request("m")}
	}).Create(t.Context(), event.CreateEvent{Object: pod("p"), IsInInitialList: true}, q)
	if q.Len() != 2 {
		t.Errorf("%d keys are queued, want 2", q.Len())
	}
}

// TestObjectAllocations holds the usual handler to its budget.
func TestObjectAllocations(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("")
	defer q.ShutDown()
	var h EventHandler = &EnqueueRequestForObject{}
	e := event.UpdateEvent{ObjectOld: pod("p"), ObjectNew: newer(pod("p"))}
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { h.Update(ctx, e, q) }); n > 0 {
		t.Errorf("%v allocations for an update", n)
	}
}
