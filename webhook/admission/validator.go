// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Warnings are texts that the caller is shown, whether the request is let through or not.
type Warnings []string

// Validator judges whether an object may be written. It is called from many goroutines at once. Its objects are its own.
//
// An error refuses the request: the caller gets the API status in the error's chain with all of the error's text, or 403 if
// there is none. RequestFromContext tells the request.
type Validator[T runtime.Object] interface {
	// ValidateCreate judges a new object.
	ValidateCreate(ctx context.Context, obj T) (warnings Warnings, err error)

	// ValidateUpdate judges a change from oldObj to newObj.
	ValidateUpdate(ctx context.Context, oldObj, newObj T) (warnings Warnings, err error)

	// ValidateDelete judges whether obj may go.
	ValidateDelete(ctx context.Context, obj T) (warnings Warnings, err error)
}

// CustomValidator is a validator of no particular type.
//
// Deprecated: use a Validator of the type.
type CustomValidator = Validator[runtime.Object]

// WithValidator makes a webhook of a validator for the type T, a pointer to a struct. It panics if validator is nil.
func WithValidator[T runtime.Object](scheme *runtime.Scheme, validator Validator[T]) *Webhook {
	return newValidator(scheme, validator, newOf[T]())
}

// WithCustomValidator makes a webhook of a validator for obj's type.
//
// Deprecated: use WithValidator.
func WithCustomValidator(scheme *runtime.Scheme, obj runtime.Object, validator CustomValidator) *Webhook {
	return newValidator(scheme, validator, newLike(obj))
}

func newValidator[T runtime.Object](scheme *runtime.Scheme, validator Validator[T], object func() T) *Webhook {
	if validator == nil {
		panic("admission: the validator is nil")
	}
	return &Webhook{Handler: &validating[T]{validator: validator, decoder: NewDecoder(scheme), object: object}}
}

// validating answers with a validator's judgement.
type validating[T runtime.Object] struct {
	validator Validator[T]
	decoder   Decoder
	object    func() T
}

func (h *validating[T]) Handle(ctx context.Context, req Request) Response {
	return h.handle(NewContextWithRequest(ctx, req), &req)
}

func (h *validating[T]) handle(ctx context.Context, req *Request) Response {
	var warnings Warnings
	var err error
	switch req.Operation {
	case admissionv1.Connect: // nothing is written
		return Allowed("")
	case admissionv1.Create:
		warnings, err = h.create(ctx, req)
	case admissionv1.Update:
		warnings, err = h.update(ctx, req)
	case admissionv1.Delete:
		warnings, err = h.remove(ctx, req)
	default:
		return Errored(http.StatusBadRequest, fmt.Errorf("unknown operation %q", req.Operation))
	}
	response := Allowed("")
	if unread, ok := err.(undecodable); ok {
		response = Errored(http.StatusBadRequest, unread.error)
	} else if err != nil {
		response = refusal(err)
	}
	return response.WithWarnings(warnings...)
}

// undecodable is an error of ours, not of the validator.
type undecodable struct{ error }

func (h *validating[T]) decode(raw runtime.RawExtension) (T, error) {
	obj := h.object()
	if err := h.decoder.DecodeRaw(raw, obj); err != nil {
		return obj, undecodable{err}
	}
	return obj, nil
}

func (h *validating[T]) create(ctx context.Context, req *Request) (Warnings, error) {
	obj, err := h.decode(req.Object)
	if err != nil {
		return nil, err
	}
	return h.validator.ValidateCreate(ctx, obj)
}

func (h *validating[T]) update(ctx context.Context, req *Request) (Warnings, error) {
	obj, err := h.decode(req.Object)
	if err != nil {
		return nil, err
	}
	old, err := h.decode(req.OldObject)
	if err != nil {
		return nil, err
	}
	return h.validator.ValidateUpdate(ctx, old, obj)
}

func (h *validating[T]) remove(ctx context.Context, req *Request) (Warnings, error) {
	obj, err := h.decode(req.OldObject)
	if err != nil {
		return nil, err
	}
	return h.validator.ValidateDelete(ctx, obj)
}
