// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"reflect"

	"github.com/wherry-dev/wherry/client"
)

// ObjectReconciler reconciles objects instead of keys.
type ObjectReconciler[object client.Object] interface {
	// Reconcile is TypedReconciler.Reconcile with the object read already.
	// The object belongs to the reconciler.
	Reconcile(context.Context, object) (Result, error)
}

// AsReconciler makes a Reconciler of one that wants objects. It reads the
// object with the client and does nothing if there is none. The object type
// must be a pointer to a struct that is complete when zero, so neither an
// unstructured object nor one that is metadata only; with any other, every
// Reconcile fails with an error that says so.
func AsReconciler[object client.Object](c client.Client, rec ObjectReconciler[object]) Reconciler {
	r := &objectReconciler[object]{client: c, rec: rec}
	if t := reflect.TypeFor[object](); t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		r.elem = t.Elem()
	}
	return r
}

type objectReconciler[object client.Object] struct {
	client client.Client
	rec    ObjectReconciler[object]
	elem   reflect.Type // what object points to; nil if it is no pointer to a struct
}

func (r *objectReconciler[object]) Reconcile(ctx context.Context, req Request) (Result, error) {
	if r.elem == nil {
		return Result{}, TerminalError(fmt.Errorf("object reconciler: %s is no pointer to a struct", reflect.TypeFor[object]()))
	}
	obj, ok := reflect.New(r.elem).Interface().(object)
	if !ok {
		return Result{}, TerminalError(fmt.Errorf("object reconciler: cannot make a %s", reflect.TypeFor[object]()))
	}
	if err := r.client.Get(ctx, req.NamespacedName, obj); err != nil {
		return Result{}, client.IgnoreNotFound(err)
	}
	return r.rec.Reconcile(ctx, obj)
}
