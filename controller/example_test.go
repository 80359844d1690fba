// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/controller"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
)

func ExampleNewUnmanaged() {
	ctx, stop := context.WithCancel(context.Background())
	c, err := controller.NewUnmanaged("example", controller.Options{
		Logger: logr.Discard(),
		Reconciler: reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			causes, _ := controller.CausesFromContext(ctx)
			fmt.Println("reconcile", req, "because", causes[0].Event)
			stop()
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A source of events from outside the cluster.
	events := make(chan event.GenericEvent, 1)
	events <- event.GenericEvent{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}}
	if err := c.Watch(source.Channel(events, &handler.EnqueueRequestForObject{})); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("stopped:", c.Start(ctx))
	// Output:
	// reconcile default/web because generic
	// stopped: <nil>
}
