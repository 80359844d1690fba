// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/cache/informertest"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
)

func podNamed(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// cached is a cache with one Pod in it; a manager has a real one.
func cached() *informertest.FakeInformers {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	c := &informertest.FakeInformers{Scheme: scheme}
	informer, err := c.FakeInformerFor(context.Background(), &corev1.Pod{})
	if err != nil {
		panic(err)
	}
	informer.Add(podNamed("web"))
	return c
}

// next starts a source as a controller does, and prints the first key and its priority.
func next[request comparable](src source.TypedSource[request]) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q := priorityqueue.New[request]("")
	defer q.ShutDown()
	run, err := source.StartRun(ctx, src, workqueue.TypedRateLimitingInterface[request](q))
	if err != nil {
		fmt.Println(err)
		return
	}
	key, priority, _ := q.GetWithPriority()
	fmt.Println(key, priority)
	q.Done(key)
	stop()
	<-run.Done()
}

// What is there when watching begins comes with a low priority: changes go first.
func ExampleKind() {
	next(source.Kind(cached(), &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}))
	// Output: default/web -100
}

func ExampleTypedKind() {
	toLength := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, pod *corev1.Pod) []int { return []int{len(pod.Name)} })
	next(source.TypedKind(cached(), &corev1.Pod{}, toLength))
	// Output: 3 -100
}

// Events from outside the cluster. They wait in the source's buffer, so the sender does not.
func ExampleChannel() {
	events := make(chan event.GenericEvent)
	go func() { events <- event.GenericEvent{Object: podNamed("web")} }()
	next(source.Channel(events, &handler.EnqueueRequestForObject{}))
	// Output: default/web 0
}

// Both events and keys may be of any type.
func ExampleTypedChannel() {
	readings := make(chan event.TypedGenericEvent[float64], 1)
	readings <- event.TypedGenericEvent[float64]{Object: 21.5}
	next(source.TypedChannel(readings, handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, r float64) []string {
		return []string{fmt.Sprintf("%.0f degrees", r)}
	})))
	// Output: 22 degrees 0
}

func ExampleWithPredicates() {
	events := make(chan event.GenericEvent, 2)
	events <- event.GenericEvent{Object: podNamed("skipped")}
	events <- event.GenericEvent{Object: podNamed("web")}
	web := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() == "web" })
	next(source.Channel(events, &handler.EnqueueRequestForObject{}, source.WithPredicates[client.Object, reconcile.Request](web)))
	// Output: default/web 0
}

func ExampleWithBufferSize() {
	events := make(chan event.GenericEvent, 1)
	events <- event.GenericEvent{Object: podNamed("web")}
	next(source.Channel(events, &handler.EnqueueRequestForObject{}, source.WithBufferSize[client.Object, reconcile.Request](10)))
	// Output: default/web 0
}

// One watch of a controller that runs on can be taken away.
func ExampleUntil() {
	c := cached()
	ctx, unwatch := context.WithCancel(context.Background())
	defer unwatch()
	src := source.Until(ctx, source.TypedSource[reconcile.Request](source.Kind(c, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{})))

	q := priorityqueue.New[reconcile.Request]("")
	defer q.ShutDown()
	run, err := source.StartRun(context.Background(), source.Source(src), workqueue.TypedRateLimitingInterface[reconcile.Request](q))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("synced:", src.WaitForSync(ctx))
	unwatch()
	<-run.Done()
	informer, _ := c.FakeInformerFor(context.Background(), &corev1.Pod{})
	fmt.Println("handlers left:", informer.Handlers())
	// Output:
	// synced: <nil>
	// handlers left: 0
}
