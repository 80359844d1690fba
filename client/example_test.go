// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
)

var ctx = context.Background()

// web is the key of the one pod that the server of these examples has.
var web = client.ObjectKey{Namespace: "default", Name: "web"}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// newClient makes a client of the examples' server.
func newClient(options client.Options) client.Client {
	c, err := client.New(newExampleServer().config(), options)
	must(err)
	return c
}

// readWeb reads the pod without printing the request.
func readWeb() *corev1.Pod {
	server := newExampleServer()
	server.quiet = true
	c, err := client.New(server.config(), client.Options{})
	must(err)
	pod := &corev1.Pod{}
	must(c.Get(ctx, web, pod))
	return pod
}

func ExampleNew() {
	c, err := client.New(newExampleServer().config(), client.Options{})
	must(err)
	pod := &corev1.Pod{}
	must(c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "web"}, pod))
	fmt.Println("on node", pod.Spec.NodeName)
	// Output:
	// GET /api/v1/namespaces/default/pods/web
	// on node n1
}

func ExampleOptions() {
	c := newClient(client.Options{FieldOwner: "my-operator", FieldValidation: metav1.FieldValidationStrict, DryRun: new(true)})
	must(c.Update(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}))
	// Output:
	// PUT /api/v1/namespaces/default/pods/web?dryRun=All&fieldManager=my-operator&fieldValidation=Strict {"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default"},"spec":{"containers":null},"status":{}}
}

func ExampleNewWithWatch() {
	c, err := client.NewWithWatch(newExampleServer().config(), client.Options{})
	must(err)
	events, err := c.Watch(ctx, &corev1.PodList{}, client.InNamespace("default"))
	must(err)
	defer events.Stop()
	event := <-events.ResultChan()
	fmt.Println(event.Type, event.Object.(*corev1.Pod).Name)
	// Output:
	// GET /api/v1/namespaces/default/pods?watch=true
	// ADDED web
}

// printingCache stands for a cache: cache.New makes a real one, which has to be started and filled first.
type printingCache struct{}

func (printingCache) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	fmt.Println("from the cache:", key)
	return nil
}

func (printingCache) List(context.Context, client.ObjectList, ...client.ListOption) error {
	fmt.Println("a list from the cache")
	return nil
}

// A client of its own reads live. Given a started cache it reads from that, but for the kinds that are left out.
func ExampleCacheOptions() {
	c := newClient(client.Options{Cache: &client.CacheOptions{
		Reader:     printingCache{},
		DisableFor: []client.Object{&corev1.Node{}},
	}})
	must(c.Get(ctx, web, &corev1.Pod{}))
	err := c.Get(ctx, client.ObjectKey{Name: "n1"}, &corev1.Node{})
	fmt.Println("not found:", apierrors.IsNotFound(err))
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	must(c.Get(ctx, web, pod))
	// Output:
	// from the cache: default/web
	// GET /api/v1/nodes/n1
	// not found: true
	// from the cache: default/web
}

// In a reconciler an object that is gone leaves nothing to do; every other error is returned, to be tried again.
func ExampleIgnoreNotFound() {
	err := newClient(client.Options{}).Get(ctx, client.ObjectKey{Namespace: "default", Name: "gone"}, &corev1.Pod{})
	fmt.Println(client.IgnoreNotFound(err))
	// Output:
	// GET /api/v1/namespaces/default/pods/gone
	// <nil>
}

func ExampleIgnoreAlreadyExists() {
	err := apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, "web")
	fmt.Println(client.IgnoreAlreadyExists(err))
	// Output: <nil>
}

func ExampleObjectKeyFromObject() {
	fmt.Println(client.ObjectKeyFromObject(readWeb()))
	// Output: default/web
}

// Take a copy, change the object, send what differs.
func ExampleMergeFrom() {
	pod := readWeb()
	before := pod.DeepCopy()
	pod.Labels = map[string]string{"seen": "yes"}
	must(newClient(client.Options{}).Patch(ctx, pod, client.MergeFrom(before)))
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web {"metadata":{"labels":{"seen":"yes"}}}
}

// Write nothing when nothing differs: each write wakes every watcher.
func ExampleMergeFrom_nothing() {
	pod := readWeb()
	before := pod.DeepCopy()
	pod.Spec.NodeName = "n1"
	if equality.Semantic.DeepEqual(before, pod) {
		fmt.Println("nothing to do")
		return
	}
	must(newClient(client.Options{}).Patch(ctx, pod, client.MergeFrom(before)))
	// Output: nothing to do
}

func ExampleMergeFromWithOptions() {
	pod := readWeb()
	before := pod.DeepCopy()
	pod.Finalizers = nil
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	must(newClient(client.Options{}).Patch(ctx, pod, patch))
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web {"metadata":{"finalizers":null,"resourceVersion":"7"}}
}

func ExampleMergeFromOptions() {
	pod := readWeb()
	data, err := client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}).Data(pod)
	must(err)
	fmt.Println(string(data))
	// Output: {"metadata":{"resourceVersion":"7"}}
}

// A strategic merge knows which lists merge by a key. It needs the Go type, so it is not for custom resources.
func ExampleStrategicMergeFrom() {
	before := readWeb()
	before.Spec.Containers = []corev1.Container{{Name: "a", Image: "i:1"}, {Name: "b", Image: "i:1"}}
	pod := before.DeepCopy()
	pod.Spec.Containers[1].Image = "i:2"
	data, err := client.StrategicMergeFrom(before).Data(pod)
	must(err)
	fmt.Println(string(data))
	data, err = client.MergeFrom(before).Data(pod)
	must(err)
	fmt.Println(string(data))
	// Output:
	// {"spec":{"containers":[{"name":"b","image":"i:2"}],"$setElementOrder/containers":[{"name":"a"},{"name":"b"}]}}
	// {"spec":{"containers":[{"name":"a","image":"i:1","resources":{}},{"name":"b","image":"i:2","resources":{}}]}}
}

func ExampleRawPatch() {
	pod := readWeb()
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/finalizers/0"}]`))
	must(newClient(client.Options{}).Patch(ctx, pod, patch))
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web [{"op":"remove","path":"/metadata/finalizers/0"}]
}

func ExampleAddFinalizer() {
	pod := readWeb()
	must(client.AddFinalizer(ctx, newClient(client.Options{}), nil, pod, "example.com/mine"))
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web {"metadata":{"finalizers":["other/f","example.com/mine"],"resourceVersion":"7","uid":"u1"}}
}

func ExampleRemoveFinalizer() {
	pod := readWeb()
	must(client.RemoveFinalizer(ctx, newClient(client.Options{}), nil, pod, "other/f"))
	must(client.RemoveFinalizer(ctx, newClient(client.Options{}), nil, pod, "not/there"))
	// Output:
	// PATCH /api/v1/namespaces/default/pods/web {"metadata":{"finalizers":[],"resourceVersion":"7","uid":"u1"}}
}
