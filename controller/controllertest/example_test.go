// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllertest_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/controller/controllertest"
)

func ExampleNewFakeInformer() {
	informer := controllertest.NewFakeInformer(controllertest.Synced)
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { fmt.Println("added", obj.(*corev1.Pod).Name) },
	})
	informer.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	fmt.Println(informer.HasSynced(), err)
	// Output:
	// added web
	// true <nil>
}

func ExampleInformerOptions() {
	var o controllertest.InformerOptions
	controllertest.Synced.Apply(&o)
	fmt.Println(o.Synced)
	// Output: true
}
