// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package handler_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

func ExampleEnqueueRequestsFromMapFunc() {
	// A ConfigMap names the objects that use it in an annotation.
	h := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetAnnotations()["used-by"]}}}
	})
	q := priorityqueue.New[reconcile.Request]("")
	defer q.ShutDown()

	before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings", Annotations: map[string]string{"used-by": "one"}}}
	after := before.DeepCopy()
	after.ResourceVersion, after.Annotations = "2", map[string]string{"used-by": "two"}
	h.Update(context.Background(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
	for range q.Len() {
		req, _ := q.Get()
		fmt.Println(req)
		q.Done(req)
	}
	// Output:
	// default/one
	// default/two
}

// kinds is a scheme with Pods and ReplicaSets, and a mapper that knows where the latter live.
func kinds() (*runtime.Scheme, meta.RESTMapper) {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	_ = appsv1.AddToScheme(scheme)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), meta.RESTScopeNamespace)
	return scheme, mapper
}

// ownedPod belongs to two ReplicaSets, of which the first controls it.
func ownedPod() *corev1.Pod {
	controls := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", Controller: &controls},
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "other"},
	}}}
}

// created prints the keys that a handler queues for a new object, and their priorities.
func created[object client.Object](h handler.TypedEventHandler[object, reconcile.Request], obj object, initial bool) {
	q := priorityqueue.New[reconcile.Request]("")
	defer q.ShutDown()
	h.Create(context.Background(), event.TypedCreateEvent[object]{Object: obj, IsInInitialList: initial}, q)
	for range q.Len() {
		req, priority, _ := q.GetWithPriority()
		fmt.Println(req, priority)
		q.Done(req)
	}
}

func ExampleEnqueueRequestForOwner() {
	scheme, mapper := kinds()
	created(handler.EnqueueRequestForOwner(scheme, mapper, &appsv1.ReplicaSet{}), client.Object(ownedPod()), false)
	// Output:
	// default/web 0
	// default/other 0
}

func ExampleTypedEnqueueRequestForOwner() {
	scheme, mapper := kinds()
	created(handler.TypedEnqueueRequestForOwner[*corev1.Pod](scheme, mapper, &appsv1.ReplicaSet{}), ownedPod(), false)
	// Output:
	// default/web 0
	// default/other 0
}

func ExampleOnlyControllerOwner() {
	scheme, mapper := kinds()
	created(handler.EnqueueRequestForOwner(scheme, mapper, &appsv1.ReplicaSet{}, handler.OnlyControllerOwner()), client.Object(ownedPod()), false)
	// Output: default/web 0
}

func ExampleTypedEnqueueRequestsFromMapFunc() {
	h := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, pod *corev1.Pod) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: pod.Spec.NodeName}}}
	})
	created(h, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}, false)
	// Output: /node-1 0
}

// A handler of one's own gets the priorities that those of this package have by themselves.
func ExampleWithLowPriorityWhenUnchanged() {
	h := handler.Funcs{CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
	}}
	lowered := handler.WithLowPriorityWhenUnchanged[client.Object, reconcile.Request](h)
	created(lowered, client.Object(ownedPod()), true)
	created(lowered, client.Object(ownedPod()), false)
	// Output:
	// default/web-1 -100
	// default/web-1 0
}
