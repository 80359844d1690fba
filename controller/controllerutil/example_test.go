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
