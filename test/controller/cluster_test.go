// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/cluster"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
	"github.com/wherry-dev/wherry/test/envtest"
)

// TestSecondCluster adds a second cluster, on a server of its own, to a manager: a controller hears of its objects, and
// what it writes there is read there at once and nowhere else.
func TestSecondCluster(t *testing.T) {
	env := &envtest.Environment{ControlPlaneStartTimeout: startLimit}
	there, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	mgr := newManager(t)
	second, err := cluster.New(there, func(o *cluster.Options) { o.Scheme = scheme })
	if err == nil {
		err = mgr.Add(second)
	}
	if err != nil {
		t.Fatal(err)
	}
	var got seen
	copyOver := reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		if req.Name != "origin" {
			return reconcile.Result{}, nil
		}
		var origin corev1.ConfigMap
		if err := second.GetClient().Get(ctx, req.NamespacedName, &origin); err != nil {
			return reconcile.Result{}, err
		}
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: "copied"}, Data: origin.Data}
		if err := client.IgnoreAlreadyExists(second.GetClient().Create(ctx, made)); err != nil {
			return reconcile.Result{}, err
		}
		if err := second.GetClient().Get(ctx, client.ObjectKeyFromObject(made), made); err != nil {
			t.Errorf("what was written to the second cluster is not read there: %v", err)
		}
		if err := mgr.GetClient().Get(ctx, client.ObjectKeyFromObject(made), made); !apierrors.IsNotFound(err) {
			t.Errorf("what was written to the second cluster is read in the first: %v", err)
		}
		return got.Reconcile(ctx, req)
	})
	if err := ctrl.NewControllerManagedBy(mgr).Named("second").
		WatchesRawSource(source.Kind(second.GetCache(), &corev1.ConfigMap{}, &handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{})).
		Complete(copyOver); err != nil {
		t.Fatal(err)
	}
	begin(t, mgr)
	live, err := client.New(there, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "origin"}}); err != nil {
		t.Fatal(err)
	}
	got.want(t, "an object of the second cluster", "origin")
}
