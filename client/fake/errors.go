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

func (k *kind) invalidVersion(name string) error {
	return k.invalid(name, field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
}

// uidConflict is what the server's storage says about a write that names another object than the one it finds.
func (k *kind) uidConflict(name string, given, stored types.UID) error {
	return k.conflict(name, fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", given, stored))
}

func badRequestf(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// invalidPatchOption is the answer to options of a patch that make no sense.
func invalidPatchOption(option, why string) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "", field.ErrorList{
		field.Forbidden(field.NewPath(option), why),
	})
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
func unsupportedPatch(given types.PatchType) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format: a patch of type %s needs the Go type of a built-in kind; "+
			"accepted media types include: %s, %s, %s", given, types.JSONPatchType, types.MergePatchType, types.ApplyYAMLPatchType),
	}}
}

// noCollection is the answer to deleting all objects of a namespaced kind without saying in which namespace.
func (k *kind) noCollection() error {
	err := apierrors.NewMethodNotSupported(k.resource(), "delete")
	err.ErrStatus.Message += ": " + k.gvk.Kind + " lives in namespaces, and the server deletes in one at a time; give client.InNamespace"
	return err
}
