// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/controller"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/config"
	"github.com/wherry-dev/wherry/manager/metrics/server"
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

// offline is a manager that never asks its cluster anything.
func offline() manager.Manager {
	mgr, err := manager.New(&rest.Config{Host: "https://cluster.example.com"}, manager.Options{
		Scheme: runtime.NewScheme(), Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		panic(err)
	}
	return mgr
}

// once is a reconciler of any keys that says what it was given, and ends the program.
func once[request comparable](stop func()) reconcile.TypedFunc[request] {
	return func(_ context.Context, key request) (reconcile.Result, error) {
		fmt.Println("reconcile", key)
		stop()
		return reconcile.Result{}, nil
	}
}

// one is a source of one key.
func one[request comparable](key request) source.TypedFunc[request] {
	return func(_ context.Context, q workqueue.TypedRateLimitingInterface[request]) error {
		q.Add(key)
		return nil
	}
}

// A controller of a manager starts and stops with it.
func ExampleNew() {
	ctx, stop := context.WithCancel(context.Background())
	mgr := offline()
	c, err := controller.New("example", mgr, controller.Options{Reconciler: once[reconcile.Request](stop)})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Watch(one(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}})); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mgr.Start(ctx))
	// Output:
	// reconcile default/web
	// <nil>
}

// Keys may be of any type that can be compared.
func ExampleNewTyped() {
	ctx, stop := context.WithCancel(context.Background())
	mgr := offline()
	c, err := controller.NewTyped("squares", mgr, controller.TypedOptions[int]{Reconciler: once[int](stop)})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Watch(one(9)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mgr.Start(ctx))
	// Output:
	// reconcile 9
	// <nil>
}

// A controller without a manager can be started again.
func ExampleNewTypedUnmanaged() {
	stopped := make(chan struct{}, 1)
	c, err := controller.NewTypedUnmanaged("hosts", controller.TypedOptions[string]{
		Logger: logr.Discard(), Reconciler: once[string](func() { stopped <- struct{}{} }),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Watch(one("node-1")); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		ctx, stop := context.WithCancel(context.Background())
		go func() {
			<-stopped
			stop()
		}()
		fmt.Println(c.Start(ctx))
	}
	// Output:
	// reconcile node-1
	// <nil>
	// reconcile node-1
	// <nil>
}

// What is not set comes from the manager's configuration.
func ExampleOptions() {
	var o controller.Options
	o.MaxConcurrentReconciles = 2
	o.DefaultFromConfig(config.Controller{MaxConcurrentReconciles: 10, CacheSyncTimeout: time.Minute})
	fmt.Println(o.MaxConcurrentReconciles, o.CacheSyncTimeout)
	// Output: 2 1m0s
}

var errNotYet = errors.New("not yet")

// Errors of one class can be made quiet, and their keys come back when it suits.
func ExampleTypedOptions() {
	ctx, stop := context.WithCancel(context.Background())
	tries := 0
	c, err := controller.NewTypedUnmanaged("patient", controller.TypedOptions[string]{
		Logger: logr.Discard(),
		RetryPolicies: []controller.RetryPolicy{{
			Name: "not yet", Result: "waiting", Quiet: true,
			Matches: func(err error) bool { return errors.Is(err, errNotYet) },
			Delay:   func(error) time.Duration { return time.Millisecond },
		}},
		Reconciler: reconcile.TypedFunc[string](func(context.Context, string) (reconcile.Result, error) {
			if tries++; tries < 3 {
				return reconcile.Result{}, errNotYet
			}
			stop()
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Watch(one("k")); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Start(ctx), "after", tries, "tries")
	// Output: <nil> after 3 tries
}

// A reconcile can tell why it runs. Outside of one nothing is known.
func ExampleCausesFromContext() {
	causes, missed := controller.CausesFromContext(context.Background())
	fmt.Println(causes, missed)
	// Output: [] 0
}
