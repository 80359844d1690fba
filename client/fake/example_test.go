// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/client/interceptor"
)

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"key": value}}
}

func ExampleNewClientBuilder() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithObjects(configMap("settings", "old")).Build()

	settings := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "settings"}, settings); err != nil {
		fmt.Println(err)
		return
	}
	stale := settings.DeepCopy()
	settings.Data["key"] = "new"
	fmt.Println(c.Update(ctx, settings), settings.ResourceVersion)
	fmt.Println(apierrors.IsConflict(c.Update(ctx, stale)))
	// Output:
	// <nil> 1000
	// true
}

func ExampleNewFakeClient() {
	c := fake.NewFakeClient(configMap("a", "1"), configMap("b", "2"))
	list := &corev1.ConfigMapList{}
	fmt.Println(c.List(context.Background(), list, client.InNamespace("default")), len(list.Items))
	// Output: <nil> 2
}

// A status sub-resource of a custom kind has to be told of: the client cannot read the definition.
func ExampleClientBuilder_WithStatusSubresource() {
	ctx := context.Background()
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "default", "name": "w"}}}
	c := fake.NewClientBuilder().WithStatusSubresource(widget).WithObjects(widget).Build()

	before := widget.DeepCopy()
	widget.Object["status"] = map[string]any{"phase": "Ready"}
	patch := client.MergeFrom(before)
	fmt.Println(c.Patch(ctx, widget.DeepCopy(), patch), c.Status().Patch(ctx, widget, patch))
	fmt.Println(widget.Object["status"])
	// Output:
	// <nil> <nil>
	// map[phase:Ready]
}

// Some of what a server does is off unless asked for, because tests written for another fake do not expect it.
func ExampleClientBuilder_WithServerBehaviour() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithServerBehaviour(fake.Identity, fake.Generations, fake.NoOpWrites).Build()
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	if err := c.Create(ctx, rs); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rs.UID != "", rs.Generation, rs.ResourceVersion)
	fmt.Println(c.Update(ctx, rs), rs.Generation, rs.ResourceVersion)
	// Output:
	// true 1 1
	// <nil> 1 1
}

func ExampleClientBuilder_WithInterceptorFuncs() {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return errors.New("the network is down")
		},
	}).Build()
	fmt.Println(c.Create(context.Background(), configMap("a", "1")))
	// Output: the network is down
}

func ExampleClientBuilder_WithIndex() {
	byValue := func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["key"]} }
	c := fake.NewClientBuilder().
		WithObjects(configMap("a", "1"), configMap("b", "2")).
		WithIndex(&corev1.ConfigMap{}, "value", byValue).Build()
	list := &corev1.ConfigMapList{}
	err := c.List(context.Background(), list, client.MatchingFields{"value": "2"})
	fmt.Println(err, list.Items[0].Name)
	// Output: <nil> b
}

func ExampleAddIndex() {
	c := fake.NewFakeClient(configMap("a", "1"))
	fmt.Println(fake.AddIndex(c, &corev1.ConfigMap{}, "value", func(client.Object) []string { return nil }))
	fmt.Println(fake.AddIndex(c, &corev1.ConfigMap{}, "value", func(client.Object) []string { return nil }))
	// Output:
	// <nil>
	// indexer conflict: field "value" of /v1, Kind=ConfigMap is indexed already
}

// Server-side apply knows who owns which field.
func ExampleClientBuilder_WithReturnManagedFields() {
	ctx := context.Background()
	c := fake.NewClientBuilder().WithReturnManagedFields().Build()
	mine := corev1ac.ConfigMap("settings", "default").WithData(map[string]string{"key": "mine"})
	fmt.Println(c.Apply(ctx, mine, client.FieldOwner("me")))
	theirs := corev1ac.ConfigMap("settings", "default").WithData(map[string]string{"key": "theirs"})
	fmt.Println(c.Apply(ctx, theirs, client.FieldOwner("them")))
	settings := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "settings"}, settings); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(settings.ManagedFields[0].Manager, settings.ManagedFields[0].FieldsV1)
	// Output:
	// <nil>
	// Apply failed with 1 conflict: conflict with "me": .data.key
	// me {"f:data":{"f:key":{}}}
}

// With one counter for all objects a watch can go on where another ended.
func ExampleClientBuilder_WithGlobalResourceVersionCounter() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := fake.NewClientBuilder().WithGlobalResourceVersionCounter().Build()
	first, second := configMap("first", "1"), configMap("second", "2")
	if err := errors.Join(c.Create(ctx, first), c.Create(ctx, second)); err != nil {
		fmt.Println(err)
		return
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: first.ResourceVersion}}
	w, err := c.Watch(ctx, &corev1.ConfigMapList{}, from)
	if err != nil {
		fmt.Println(err)
		return
	}
	event := <-w.ResultChan()
	fmt.Println(event.Type, event.Object.(*corev1.ConfigMap).Name)
	// Output: ADDED second
}
