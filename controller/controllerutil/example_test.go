// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllerutil_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/controller/controllerutil"
)

func ExampleCreateOrUpdate() {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	c := fake.NewClientBuilder().WithScheme(scheme).Build()

	for range 2 {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
		result, err := controllerutil.CreateOrUpdate(context.Background(), c, m, func() error {
			m.Data = map[string]string{"color": "blue"}
			return nil
		})
		fmt.Println(result, err)
	}
	// Output:
	// created <nil>
	// unchanged <nil>
}

func ExampleSetControllerReference() {
	scheme := runtime.NewScheme()
	_ = appsv1.AddToScheme(scheme)

	web := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}
	api := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "api", UID: "2"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1"}}

	fmt.Println(controllerutil.SetControllerReference(web, pod, scheme))
	fmt.Println(controllerutil.SetControllerReference(api, pod, scheme))
	// Output:
	// <nil>
	// object default/web-1 is already owned by its controller ReplicaSet "web"
}

// The status goes by a patch of its own, if the object has one that changed.
func ExampleCreateOrPatch() {
	scheme := runtime.NewScheme()
	_ = appsv1.AddToScheme(scheme)
	web := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(web).WithStatusSubresource(web).Build()

	for range 2 {
		result, err := controllerutil.CreateOrPatch(context.Background(), c, web, func() error {
			web.Labels = map[string]string{"app": "web"}
			web.Status.Replicas = 3
			return nil
		})
		fmt.Println(result, err)
	}
	// Output:
	// updatedStatus <nil>
	// unchanged <nil>
}

func settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
}

// In memory only: whoever changes the object writes it.
func ExampleAddFinalizer() {
	m := settings()
	fmt.Println(controllerutil.AddFinalizer(m, "example.com/cleanup"), m.Finalizers)
	fmt.Println(controllerutil.AddFinalizer(m, "example.com/cleanup"), m.Finalizers)
	// Output:
	// true [example.com/cleanup]
	// false [example.com/cleanup]
}

func ExampleRemoveFinalizer() {
	m := settings()
	m.Finalizers = []string{"example.com/cleanup", "example.com/other"}
	fmt.Println(controllerutil.RemoveFinalizer(m, "example.com/cleanup"), m.Finalizers)
	// Output: true [example.com/other]
}

func ExampleContainsFinalizer() {
	m := settings()
	m.Finalizers = []string{"example.com/cleanup"}
	fmt.Println(controllerutil.ContainsFinalizer(m, "example.com/cleanup"), controllerutil.ContainsFinalizer(m, "example.com/other"))
	// Output: true false
}

// owners is a scheme and two objects, the first of which may own the second.
func owners() (*runtime.Scheme, *appsv1.ReplicaSet, *corev1.ConfigMap) {
	scheme := runtime.NewScheme()
	_ = appsv1.AddToScheme(scheme)
	return scheme, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}, settings()
}

// An object may have many owners; it goes when the last of them has.
func ExampleSetOwnerReference() {
	scheme, web, m := owners()
	err := controllerutil.SetOwnerReference(web, m, scheme)
	fmt.Println(m.OwnerReferences[0].Kind, m.OwnerReferences[0].Name, m.OwnerReferences[0].Controller == nil, err)
	// Output: ReplicaSet web true <nil>
}

func ExampleWithBlockOwnerDeletion() {
	scheme, web, m := owners()
	err := controllerutil.SetOwnerReference(web, m, scheme, controllerutil.WithBlockOwnerDeletion(true))
	fmt.Println(*m.OwnerReferences[0].BlockOwnerDeletion, err)
	// Output: true <nil>
}

func ExampleRemoveOwnerReference() {
	scheme, web, m := owners()
	_ = controllerutil.SetOwnerReference(web, m, scheme)
	fmt.Println(controllerutil.RemoveOwnerReference(web, m, scheme), len(m.OwnerReferences))
	// Output: <nil> 0
}

// It takes away nobody but the controller.
func ExampleRemoveControllerReference() {
	scheme, web, m := owners()
	_ = controllerutil.SetControllerReference(web, m, scheme)
	fmt.Println(controllerutil.RemoveControllerReference(web, m, scheme), len(m.OwnerReferences))
	// Output: <nil> 0
}

func ExampleHasControllerReference() {
	scheme, web, m := owners()
	fmt.Println(controllerutil.HasControllerReference(m))
	_ = controllerutil.SetControllerReference(web, m, scheme)
	fmt.Println(controllerutil.HasControllerReference(m))
	// Output:
	// false
	// true
}

func ExampleHasOwnerReference() {
	scheme, web, m := owners()
	_ = controllerutil.SetOwnerReference(web, m, scheme)
	fmt.Println(controllerutil.HasOwnerReference(m.OwnerReferences, web, scheme))
	// Output: true <nil>
}
