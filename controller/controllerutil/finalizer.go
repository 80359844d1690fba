// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllerutil

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherry-dev/wherry/client"
)

// AddFinalizer adds a finalizer to the object, in memory only, and tells
// whether it was missing.
func AddFinalizer(o client.Object, finalizer string) (finalizersUpdated bool) {
	have := o.GetFinalizers()
	if slices.Contains(have, finalizer) {
		return false
	}
	o.SetFinalizers(append(slices.Clone(have), finalizer))
	return true
}

// RemoveFinalizer takes a finalizer from the object, in memory only, and tells
// whether it was there.
func RemoveFinalizer(o client.Object, finalizer string) (finalizersUpdated bool) {
	have := o.GetFinalizers()
	if !slices.Contains(have, finalizer) {
		return false
	}
	o.SetFinalizers(slices.DeleteFunc(slices.Clone(have), func(f string) bool { return f == finalizer }))
	return true
}

// ContainsFinalizer tells whether the object has a finalizer.
func ContainsFinalizer(o client.Object, finalizer string) bool {
	return slices.Contains(o.GetFinalizers(), finalizer)
}

// finalizerTries bounds how often EnsureFinalizer and DropFinalizer write when
// somebody else changes the object at the same time.
const finalizerTries = 5

// EnsureFinalizer adds a finalizer to the object on the server, and tells
// whether it was missing. The patch names the resourceVersion it was made for,
// so that it cannot undo another writer's change to the list of finalizers;
// after a conflict it reads the object anew and tries again. The object is
// updated in place and should be as it was read: other changes made to it in
// memory are written too, and lost after a conflict.
func EnsureFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) (added bool, err error) {
	return patchFinalizers(ctx, c, obj, finalizer, AddFinalizer)
}

// DropFinalizer is EnsureFinalizer's counterpart: it takes the finalizer from
// the object on the server. An object that is gone has none.
func DropFinalizer(ctx context.Context, c client.Client, obj client.Object, finalizer string) (dropped bool, err error) {
	dropped, err = patchFinalizers(ctx, c, obj, finalizer, RemoveFinalizer)
	return dropped, client.IgnoreNotFound(err)
}

func patchFinalizers(ctx context.Context, c client.Client, obj client.Object, finalizer string, change func(client.Object, string) bool) (changed bool, err error) {
	for range finalizerTries {
		before, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			return false, fmt.Errorf("finalizer %q: a copy of %T is no client.Object", finalizer, obj)
		}
		if !change(obj, finalizer) {
			return false, nil
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err = c.Patch(ctx, obj, patch); err == nil {
			return true, nil
		}
		if !apierrors.IsConflict(err) {
			return false, fmt.Errorf("finalizer %q: %w", finalizer, err)
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return false, fmt.Errorf("finalizer %q: read after a conflict: %w", finalizer, err)
		}
	}
	return false, fmt.Errorf("finalizer %q: %d conflicts in a row: %w", finalizer, finalizerTries, err)
}
