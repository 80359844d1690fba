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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/testing"

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

// A client with a scheme of its own knows the Go types in it and no others.
func ExampleClientBuilder_WithScheme() {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	c := fake.NewClientBuilder().WithScheme(s).Build()
	fmt.Println(c.Create(ctx, configMap("a", "1")))
	err := c.Create(ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	fmt.Println(runtime.IsNotRegisteredError(err))
	// Output:
	// <nil>
	// true
}

// Fixtures are copied: what the test does with its own object later is no write.
func ExampleClientBuilder_WithObjects() {
	fixture := configMap("settings", "old")
	c := fake.NewClientBuilder().WithObjects(fixture, configMap("other", "1")).Build()
	fixture.Data["key"] = "new"
	settings := &corev1.ConfigMap{}
	err := c.Get(context.Background(), client.ObjectKeyFromObject(fixture), settings)
	fmt.Println(err, settings.Data["key"], settings.ResourceVersion)
	// Output: <nil> old 999
}

func ExampleClientBuilder_WithLists() {
	fixtures := &corev1.ConfigMapList{Items: []corev1.ConfigMap{*configMap("a", "1"), *configMap("b", "2")}}
	c := fake.NewClientBuilder().WithLists(fixtures).Build()
	list := &corev1.ConfigMapList{}
	fmt.Println(c.List(context.Background(), list), len(list.Items))
	// Output: <nil> 2
}

// Objects and lists may be mixed, as a decoder of YAML files gives them.
func ExampleClientBuilder_WithRuntimeObjects() {
	fixtures := []runtime.Object{
		configMap("a", "1"),
		&corev1.ConfigMapList{Items: []corev1.ConfigMap{*configMap("b", "2")}},
	}
	c := fake.NewClientBuilder().WithRuntimeObjects(fixtures...).Build()
	list := &corev1.ConfigMapList{}
	fmt.Println(c.List(context.Background(), list), len(list.Items))
	// Output: <nil> 2
}

// A tracker is shared with a fake clientset, or looked into by the test.
func ExampleClientBuilder_WithObjectTracker() {
	tracker := testing.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())
	c := fake.NewClientBuilder().WithObjectTracker(tracker).Build()
	fmt.Println(c.Create(context.Background(), configMap("settings", "new")))
	obj, err := tracker.Get(corev1.SchemeGroupVersion.WithResource("configmaps"), "default", "settings")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(obj.(*corev1.ConfigMap).Data["key"])
	// Output:
	// <nil>
	// new
}

// A mapper tells that a custom kind has no namespaces, and what code under test asks RESTMapper for.
func ExampleClientBuilder_WithRESTMapper() {
	planet := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Planet"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(planet, planet.GroupVersion().WithResource("planets"), planet.GroupVersion().WithResource("planet"), meta.RESTScopeRoot)
	c := fake.NewClientBuilder().WithRESTMapper(mapper).Build()

	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(planet)
	fmt.Println(c.IsObjectNamespaced(obj))
	mapping, err := c.RESTMapper().RESTMapping(planet.GroupKind(), planet.Version)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mapping.Resource.Resource)
	// Output:
	// false <nil>
	// planets
}

// The converters decide what of a list belongs to whom. One that deduces the structure takes each list for a whole; those of
// built-in kinds know the lists whose items have keys.
func ExampleClientBuilder_WithTypeConverters() {
	ctx := context.Background()
	account := func(secret string) *corev1ac.ServiceAccountApplyConfiguration {
		return corev1ac.ServiceAccount("robot", "default").
			WithSecrets(corev1ac.ObjectReference().WithName(secret))
	}
	for _, b := range []*fake.ClientBuilder{
		fake.NewClientBuilder(),
		fake.NewClientBuilder().WithTypeConverters(managedfields.NewDeducedTypeConverter()),
	} {
		c := b.Build()
		if err := c.Apply(ctx, account("mine"), client.FieldOwner("me")); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(c.Apply(ctx, account("theirs"), client.FieldOwner("them")))
	}
	// Output:
	// <nil>
	// Apply failed with 1 conflict: conflict with "me": .secrets
}
