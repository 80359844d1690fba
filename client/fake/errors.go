// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	errModified      = errors.New("the object has been modified; please apply your changes to the latest version and try again")
	errVersionOnMake = "resourceVersion should not be set on objects to be created"
)

func (k *kind) notFound(name string) error { return apierrors.NewNotFound(k.resource(), name) }

// noSubresource is the answer to a request for a sub-resource that the kind does not have. It is a NotFound, as the server's
// is, which knows only that there is nothing at that address.
func (k *kind) noSubresource(name, subresource string) error {
	err := apierrors.NewNotFound(k.resource(), name)
	err.ErrStatus.Message += fmt.Sprintf(": %s has no sub-resource %q", k.gvk.Kind, subresource)
	if subresource == statusField {
		err.ErrStatus.Message += "; if its definition has one, name the kind in WithStatusSubresource"
	}
	return err
}

func (k *kind) conflict(name string, err error) error {
	return apierrors.NewConflict(k.resource(), name, err)
}

func (k *kind) invalid(name string, errs ...*field.Error) error {
	return apierrors.NewInvalid(k.gvk.GroupKind(), name, errs)
}

// invalidVersion and preconditionConflict name the resource where one expects the kind, and the other way round: so does the
// server.
func (k *kind) invalidVersion(name string) error {
	gk := schema.GroupKind{Group: k.gvk.Group, Kind: k.gvr.Resource}
	return apierrors.NewInvalid(gk, name, field.ErrorList{
		field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
	})
}

func (k *kind) preconditionConflict(name string, err error) error {
	return apierrors.NewConflict(schema.GroupResource{Group: k.gvk.Group, Resource: k.gvk.Kind}, name, err)
}

// uidConflict is what the server's storage says about a write that names another object than the one it finds.
func (k *kind) uidConflict(name string, given, stored types.UID) error {
	return k.conflict(name, fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", given, stored))
}

func badRequestf(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// invalidOptions is the answer to options that make no sense.
func invalidOptions(kind string, err *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: kind}, "", field.ErrorList{err})
}

// unprocessable is the answer to a patch that is well formed and cannot be applied.
func (k *kind) unprocessable(err error) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity,
		Reason: metav1.StatusReasonInvalid, Message: "the server rejected our request due to an error in our request",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeUnexpectedServerResponse, Message: err.Error(),
		}}},
	}}
}

// unsupportedPatch is the answer to a kind of patch that the resource does not take.
func (k *kind) unsupportedPatch() error {
	err := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s, %s, %s",
			types.JSONPatchType, types.MergePatchType, types.ApplyYAMLPatchType),
	}}
	if isBuiltin(k.gvk.Group) {
		err.ErrStatus.Message = "415: Unsupported Media Type"
	}
	return err
}

// noCollection is the answer to deleting a collection that the server does not delete, with what the live client adds to it.
// There is no such method on a built-in kind's address, and no such address for a custom kind.
func (k *kind) noCollection(why string) error {
	err := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: "the server does not allow this method on the requested resource",
	}}
	if !isBuiltin(k.gvk.Group) {
		err.ErrStatus.Code, err.ErrStatus.Reason = http.StatusNotFound, metav1.StatusReasonNotFound
		err.ErrStatus.Message = fmt.Sprintf("the server could not find the requested resource (delete %s)", k.resource())
		err.ErrStatus.Details = &metav1.StatusDetails{Group: k.gvr.Group, Kind: k.gvr.Resource, Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeUnexpectedServerResponse, Message: "404 page not found",
		}}}
	}
	err.ErrStatus.Message += fmt.Sprintf(" (delete all of %s: %s)", k.gvk.GroupKind(), why)
	return err
}
