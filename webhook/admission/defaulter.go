// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// Defaulter sets what a caller left open. It is called from many goroutines at once.
type Defaulter[T runtime.Object] interface {
	// Default changes obj, which is its own. An error refuses the request; an API status in its chain is what the caller gets.
	// RequestFromContext tells the request. Default is not called for a DELETE.
	Default(ctx context.Context, obj T) error
}

// CustomDefaulter is a defaulter of no particular type.
//
// Deprecated: use a Defaulter of the type.
type CustomDefaulter = Defaulter[runtime.Object]

type defaulterOptions struct {
	removeUnknownOrOmitable bool
}

// DefaulterOption changes how a defaulter's webhook works.
type DefaulterOption func(*defaulterOptions)

// DefaulterRemoveUnknownOrOmitableFields makes the patch take away all that the Go type would not write: fields that it does
// not know, and empty ones that it omits. Without it they stay.
func DefaulterRemoveUnknownOrOmitableFields(o *defaulterOptions) { o.removeUnknownOrOmitable = true }

// WithDefaulter makes a webhook of a defaulter for the type T, a pointer to a struct. It panics if defaulter is nil.
func WithDefaulter[T runtime.Object](scheme *runtime.Scheme, defaulter Defaulter[T], opts ...DefaulterOption) *Webhook {
	return newDefaulter(scheme, defaulter, newOf[T](), opts)
}

// WithCustomDefaulter makes a webhook of a defaulter for obj's type.
//
// Deprecated: use WithDefaulter.
func WithCustomDefaulter(scheme *runtime.Scheme, obj runtime.Object, defaulter CustomDefaulter, opts ...DefaulterOption) *Webhook {
	return newDefaulter(scheme, defaulter, newLike(obj), opts)
}

func newDefaulter[T runtime.Object](scheme *runtime.Scheme, defaulter Defaulter[T], object func() T, opts []DefaulterOption) *Webhook {
	if defaulter == nil {
		panic("admission: the defaulter is nil")
	}
	h := &defaulting[T]{defaulter: defaulter, decoder: NewDecoder(scheme), object: object}
	for _, opt := range opts {
		opt(&h.options)
	}
	return &Webhook{Handler: h}
}

// newOf returns a function that makes empty objects of type T.
func newOf[T runtime.Object]() func() T { return newOfType[T](reflect.TypeFor[T]()) }

// newLike returns a function that makes empty objects of obj's type.
func newLike(obj runtime.Object) func() runtime.Object {
	return newOfType[runtime.Object](reflect.TypeOf(obj))
}

func newOfType[T runtime.Object](t reflect.Type) func() T {
	if t == nil || t.Kind() != reflect.Pointer {
		panic(fmt.Sprintf("admission: the object's type must be a pointer to a struct, got %v", t))
	}
	return func() T { return reflect.New(t.Elem()).Interface().(T) }
}

// defaulting answers with what a defaulter changed.
type defaulting[T runtime.Object] struct {
	defaulter Defaulter[T]
	decoder   Decoder
	object    func() T
	options   defaulterOptions
	changes   atomic.Bool // the last object was changed, as the next may be
}

func (h *defaulting[T]) Handle(ctx context.Context, req Request) Response {
	return h.handle(NewContextWithRequest(ctx, req), &req)
}

func (h *defaulting[T]) handle(ctx context.Context, req *Request) Response {
	if req.Operation == admissionv1.Delete { // there is no object to change
		return Allowed("")
	}
	obj, err := h.decode(req)
	if err != nil {
		return Errored(http.StatusBadRequest, err)
	}
	if h.options.removeUnknownOrOmitable {
		return h.replace(ctx, req, obj)
	}
	was := remember(obj, h.changes.Load())
	if err := h.defaulter.Default(ctx, obj); err != nil {
		return refusal(err)
	}
	same := was.still(obj)
	h.changes.Store(!same)
	if same {
		return Allowed("") // the usual case, and no text has to be written for it
	}
	before := was.copy
	if before == nil {
		if before, err = h.decode(req); err != nil {
			return Errored(http.StatusInternalServerError, err)
		}
	}
	return patch(req.Object.Raw, before, obj)
}

func (h *defaulting[T]) decode(req *Request) (T, error) {
	obj := h.object()
	return obj, h.decoder.DecodeRaw(req.Object, obj)
}

// replace makes the object what the Go type writes.
func (h *defaulting[T]) replace(ctx context.Context, req *Request, obj T) Response {
	if err := h.defaulter.Default(ctx, obj); err != nil {
		return refusal(err)
	}
	after, err := json.Marshal(obj)
	if err != nil {
		return Errored(http.StatusInternalServerError, err)
	}
	return PatchResponseFromRaw(req.Object.Raw, after)
}

// patch answers with what makes of original what was made of before to get after.
func patch(original []byte, before, after runtime.Object) Response {
	is, err := json.Marshal(after)
	if err != nil {
		return Errored(http.StatusInternalServerError, err)
	}
	was, err := json.Marshal(before)
	if err != nil {
		return Errored(http.StatusInternalServerError, err)
	}
	if bytes.Equal(was, is) {
		return Allowed("")
	}
	// All three are known to be JSON: one was decoded, two were written just now.
	return Patched("", diff(parseValid(original), parseValid(was), parseValid(is))...)
}

// memory is what an object was before a defaulter had it: its fingerprint, or a copy.
type memory struct {
	print uint64
	copy  runtime.Object
}

// remember makes a copy if it is asked to, and if there is no fingerprint. A copy costs more if nothing changes, and less
// otherwise, since the object need not be read anew for the patch.
func remember(obj runtime.Object, copied bool) memory {
	if !copied {
		if print, ok := fingerprint(obj); ok {
			return memory{print: print}
		}
	}
	return memory{copy: obj.DeepCopyObject()}
}

// still says whether obj is what it was.
func (m memory) still(obj runtime.Object) bool {
	if m.copy != nil {
		return reflect.DeepEqual(m.copy, obj)
	}
	print, ok := fingerprint(obj)
	return ok && print == m.print
}

// refusal is the answer to an error of a defaulter or validator: the first API status in its chain, with all of the error's
// text, or 403.
func refusal(err error) Response {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Denied(err.Error())
	}
	result := status.Status()
	if _, bare := err.(apierrors.APIStatus); !bare { // what wraps it has something to say as well
		result.Message = err.Error()
	}
	return Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &result}}
}
