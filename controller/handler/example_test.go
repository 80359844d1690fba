// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package handler_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
