// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

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
