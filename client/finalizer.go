// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// maxFinalizerAttempts is how often AddFinalizer and RemoveFinalizer write at most when others write at the same time.
const maxFinalizerAttempts = 5

// AddFinalizer adds one finalizer to obj on the server, if it is not there, and fills obj with the server's answer.
//
// Nothing else of obj is written, and no finalizer of others is lost: the patch holds the list of finalizers as obj has it
// with obj's resourceVersion as a lock. If that is too old, the object is read again, by reader or, if that is nil, by c,
// and the patch is tried anew, at most a few times; the last conflict is returned. An object that is being deleted takes no
// new finalizers: that is the server's error, for which apierrors.IsInvalid or IsForbidden is true. An object that does not
// exist is an error for which apierrors.IsNotFound is true. With nothing to do, nothing is sent and obj is not changed.
//
// reader should read live, like a manager's GetAPIReader: a cache may not know of the change that caused a conflict.
func AddFinalizer(ctx context.Context, c Client, reader Reader, obj Object, finalizer string) error {
	return changeFinalizers(ctx, c, reader, obj, finalizer, "add", func(have []string) ([]string, bool) {
		if slices.Contains(have, finalizer) {
			return have, false
		}
		return append(slices.Clone(have), finalizer), true
	})
}

// RemoveFinalizer removes one finalizer from obj on the server, in the way of AddFinalizer. An object that does not exist
// any more is done: that is no error.
func RemoveFinalizer(ctx context.Context, c Client, reader Reader, obj Object, finalizer string) error {
	err := changeFinalizers(ctx, c, reader, obj, finalizer, "remove", func(have []string) ([]string, bool) {
		left := slices.DeleteFunc(slices.Clone(have), func(f string) bool { return f == finalizer })
		return left, len(left) != len(have)
	})
	return IgnoreNotFound(err)
}

func changeFinalizers(
	ctx context.Context, c Client, reader Reader, obj Object, finalizer, does string,
	change func(have []string) ([]string, bool),
) error {
	if apiutil.IsNil(obj) {
		return fmt.Errorf("%s finalizer %q: %w", does, finalizer, apiutil.ErrNilObject)
	}
	if apiutil.IsNil(reader) {
		reader = c
	}
	for n := 1; ; n++ {
		finalizers, changed := change(obj.GetFinalizers())
		if !changed {
			return nil
		}
		patch, err := finalizerPatch(obj, finalizers)
		if err == nil {
			err = c.Patch(ctx, obj, patch)
		}
		if err == nil || !apierrors.IsConflict(err) || n == maxFinalizerAttempts {
			return err
		}
		uid := obj.GetUID()
		if err := reader.Get(ctx, ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if uid != "" && obj.GetUID() != uid {
			// A namesake, with finalizers of its own: the object that was meant is gone.
			return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T with UID %s", obj, uid)}, obj.GetName())
		}
	}
}

// finalizerPatch sets the list of finalizers and locks it by the resourceVersion, and by the UID if there is one.
func finalizerPatch(obj Object, finalizers []string) (Patch, error) {
	if obj.GetResourceVersion() == "" {
		return nil, fmt.Errorf("change the finalizers of %q: it has no resourceVersion, read it first", ObjectKeyFromObject(obj))
	}
	metadata := map[string]any{"finalizers": finalizers, "resourceVersion": obj.GetResourceVersion()}
	if obj.GetUID() != "" {
		metadata["uid"] = obj.GetUID()
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	return RawPatch(types.MergePatchType, data), err
}
