// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// Mistakes in the chain are collected.
func ExampleControllerManagedBy_mistakes() {
	nop := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	err := builder.ControllerManagedBy(nil).Named("pods").
		For(&corev1.Pod{}).
		For(&corev1.ConfigMap{}).
		Complete(nop)
	fmt.Println(err)
	// Output:
	// controller "pods": For is called twice; a controller reconciles one kind
	// the manager is nil
}
