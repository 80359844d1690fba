// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

func ExampleFunc() {
	r := reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
		if req.Namespace == "" {
			return reconcile.Result{}, reconcile.TerminalError(errors.New("nothing to do here"))
		}
		return reconcile.Result{}, nil
	})
	_, err := r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n"}})
	fmt.Println(err, errors.Is(err, reconcile.TerminalError(nil)))
	// Output: terminal error: nothing to do here true
}

// An error that no retry can mend: the key is dropped until its next event.
func ExampleTerminalError() {
	err := fmt.Errorf("settings: %w", reconcile.TerminalError(errors.New("no such color")))
	fmt.Println(errors.Is(err, reconcile.TerminalError(nil)), err)
	// Output: true settings: terminal error: no such color
}

// greeter is given objects instead of keys; one that is gone is not asked about.
type greeter struct{}

func (greeter) Reconcile(_ context.Context, m *corev1.ConfigMap) (reconcile.Result, error) {
	fmt.Println("hello", m.Name)
	return reconcile.Result{}, nil
}

func ExampleAsReconciler() {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "there"}}).Build()
	r := reconcile.AsReconciler(c, greeter{})
	for _, name := range []string{"there", "gone"} {
		fmt.Println(r.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: name}}))
	}
	// Output:
	// hello there
	// {false 0s <nil>} <nil>
	// {false 0s <nil>} <nil>
}
