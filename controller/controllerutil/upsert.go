// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllerutil

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherry-dev/wherry/client"
)

// OperationResult says what CreateOrUpdate or CreateOrPatch did.
type OperationResult string

// The results.
const (
	// OperationResultNone: nothing was written.
	OperationResultNone OperationResult = "unchanged"
	// OperationResultCreated: the object was created.
	OperationResultCreated OperationResult = "created"
	// OperationResultUpdated: the object was changed, but not its status.
	OperationResultUpdated OperationResult = "updated"
	// OperationResultUpdatedStatus: the object and its status were changed.
	OperationResultUpdatedStatus OperationResult = "updatedStatus"
	// OperationResultUpdatedStatusOnly: only the status was changed.
	OperationResultUpdatedStatusOnly OperationResult = "updatedStatusOnly"
)

// MutateFn brings an object, as it was read, into its wanted state. It must
// not change its name or namespace.
type MutateFn func() error

// CreateOrUpdate creates the object, or updates it if it is there already. f
// is called with obj as it was read, or as it was given if there is none, and
// changes it; without a change nothing is written. Status is not written.
//
// Fields that the server fills in must be set by f to what the server makes of
// them, or be left as they are; else every call writes.
func CreateOrUpdate(ctx context.Context, c client.Client, obj client.Object, f MutateFn) (OperationResult, error) {
	found, err := read(ctx, c, obj)
	if err != nil {
		return OperationResultNone, err
	}
	if !found {
		return create(ctx, c, obj, f)
	}
	existing := obj.DeepCopyObject()
	if err := mutate(f, obj); err != nil {
		return OperationResultNone, err
	}
	if equality.Semantic.DeepEqual(existing, obj) {
		return OperationResultNone, nil
	}
	if err := c.Update(ctx, obj); err != nil {
		return OperationResultNone, err
	}
	return OperationResultUpdated, nil
}

// CreateOrPatch creates the object, or patches it if it is there already. f is
// called as by CreateOrUpdate. Only what f changed is sent, and the status is
// patched as well if f changed that; when the object is created the status is
// not written.
func CreateOrPatch(ctx context.Context, c client.Client, obj client.Object, f MutateFn) (OperationResult, error) {
	found, err := read(ctx, c, obj)
	if err != nil {
		return OperationResultNone, err
	}
	if !found {
		return create(ctx, c, obj, f)
	}
	before, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return OperationResultNone, fmt.Errorf("a copy of %T is no client.Object", obj)
	}
	if err := mutate(f, obj); err != nil {
		return OperationResultNone, err
	}
	was, wasStatus, err := split(before)
	if err != nil {
		return OperationResultNone, err
	}
	is, isStatus, err := split(obj)
	if err != nil {
		return OperationResultNone, err
	}
	result := OperationResultNone
	if !equality.Semantic.DeepEqual(was, is) {
		if err := c.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
			return result, err
		}
		result = OperationResultUpdated
	}
	if equality.Semantic.DeepEqual(wasStatus, isStatus) {
		return result, nil
	}
	if err := patchStatus(ctx, c, obj, before, isStatus, result); err != nil {
		return result, err
	}
	if result == OperationResultUpdated {
		return OperationResultUpdatedStatus, nil
	}
	return OperationResultUpdatedStatusOnly, nil
}

// patchStatus brings the status to the wanted one. After the object was
// patched it holds the server's answer, whose status is the old one.
func patchStatus(ctx context.Context, c client.Client, obj, before client.Object, status any, done OperationResult) error {
	base := before
	if done == OperationResultUpdated {
		answered, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("a copy of %T is no client.Object", obj)
		}
		base = answered
		if err := setStatus(obj, status); err != nil {
			return err
		}
	}
	return c.Status().Patch(ctx, obj, client.MergeFrom(base))
}

func read(ctx context.Context, c client.Client, obj client.Object) (found bool, err error) {
	err = c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	return err == nil, client.IgnoreNotFound(err)
}

func create(ctx context.Context, c client.Client, obj client.Object, f MutateFn) (OperationResult, error) {
	if err := mutate(f, obj); err != nil {
		return OperationResultNone, err
	}
	if err := c.Create(ctx, obj); err != nil {
		if apierrors.IsAlreadyExists(err) {
			// The read came from a cache that has not heard of the object.
			return OperationResultNone, fmt.Errorf("the object appeared after it was read: %w", err)
		}
		return OperationResultNone, err
	}
	return OperationResultCreated, nil
}

func mutate(f MutateFn, obj client.Object) error {
	if f == nil {
		return nil
	}
	key := client.ObjectKeyFromObject(obj)
	if err := f(); err != nil {
		return err
	}
	if changed := client.ObjectKeyFromObject(obj); changed != key {
		return fmt.Errorf("the MutateFn changed the object's name from %s to %s", key, changed)
	}
	return nil
}

// split divides an object into its status and everything else.
func split(obj client.Object) (rest map[string]any, status any, err error) {
	rest, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, nil, err
	}
	status = rest["status"]
	delete(rest, "status")
	return rest, status, nil
}

// setStatus puts a status into an object.
func setStatus(obj client.Object, status any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	delete(content, "status")
	if status != nil {
		content["status"] = status
	}
	if u, ok := obj.(runtime.Unstructured); ok {
		u.SetUnstructuredContent(content)
		return nil
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return errors.New("the object is no pointer")
	}
	v.Elem().SetZero()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}
