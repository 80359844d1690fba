// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Patch makes the body of a patch request.
type Patch interface {
	// Type tells the content type of the patch.
	Type() types.PatchType
	// Data gives the patch that leads to obj's present content. It does not change obj.
	Data(obj Object) ([]byte, error)
}

// Reader reads objects.
type Reader interface {
	// Get reads the object with the given key into obj, whose type and kind tell what is asked for. Whatever obj held
	// before is gone afterwards. An object that does not exist is an error for which apierrors.IsNotFound is true; on an
	// error obj's content is undefined.
	Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error

	// List reads the objects that opts select into list, whose type and kind tell what is asked for. Whatever list held
	// before is gone afterwards. An empty list is no error.
	List(ctx context.Context, list ObjectList, opts ...ListOption) error
}

// Writer writes objects. Each method returns when the API server has answered or ctx is done; in the latter case the
// write may have happened.
type Writer interface {
	// Apply sends an apply configuration as a server-side apply and writes the server's answer back into it.
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...ApplyOption) error

	// Create creates obj and fills it with the server's answer.
	Create(ctx context.Context, obj Object, opts ...CreateOption) error

	// Delete deletes the object with obj's kind, namespace and name. obj is not changed.
	Delete(ctx context.Context, obj Object, opts ...DeleteOption) error

	// Update replaces the object and fills obj with the server's answer, including whatever the server did not take, such
	// as a changed status where status is a sub-resource.
	Update(ctx context.Context, obj Object, opts ...UpdateOption) error

	// Patch patches the object with obj's kind, namespace and name and fills obj with the server's answer.
	Patch(ctx context.Context, obj Object, patch Patch, opts ...PatchOption) error

	// DeleteAllOf deletes every object of obj's kind that opts select, in one request. A kind that lives in a namespace
	// needs InNamespace: the server does not delete over namespaces.
	DeleteAllOf(ctx context.Context, obj Object, opts ...DeleteAllOfOption) error
}

// StatusClient gives access to the status sub-resource.
type StatusClient interface {
	// Status returns a writer of the status sub-resource.
	Status() SubResourceWriter
}

// SubResourceClientConstructor gives access to any sub-resource.
type SubResourceClientConstructor interface {
	// SubResource returns a client of the sub-resource with the given name, such as "scale", "eviction" or "token". It
	// sends nothing.
	SubResource(subResource string) SubResourceClient
}

// SubResourceReader reads a sub-resource. It never reads from a cache.
type SubResourceReader interface {
	// Get reads the sub-resource of obj, which is named by its kind, namespace and name, into subResource.
	Get(ctx context.Context, obj Object, subResource Object, opts ...SubResourceGetOption) error
}

// SubResourceWriter writes a sub-resource.
type SubResourceWriter interface {
	// Create creates the sub-resource of obj from subResource and fills subResource with the answer. A subResource without
	// a name gets that of obj.
	Create(ctx context.Context, obj Object, subResource Object, opts ...SubResourceCreateOption) error

	// Update replaces the sub-resource of obj and fills the object that was sent with the answer: obj itself or, with
	// WithSubResourceBody, the body.
	Update(ctx context.Context, obj Object, opts ...SubResourceUpdateOption) error

	// Patch patches the sub-resource of obj and fills the object that the patch was made from, obj or the body of
	// WithSubResourceBody, with the answer.
	Patch(ctx context.Context, obj Object, patch Patch, opts ...SubResourcePatchOption) error

	// Apply sends an apply configuration to the sub-resource and writes the server's answer back into it.
	Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...SubResourceApplyOption) error
}

// SubResourceClient reads and writes one sub-resource.
type SubResourceClient interface {
	SubResourceReader
	SubResourceWriter
}

// StatusWriter is the writer of the status sub-resource, under its older name.
type StatusWriter = SubResourceWriter

// Client reads and writes objects in all three forms and knows their kinds. All methods may be called at once from many
// goroutines. An object given to a call must not be used by others until the call returns, and is the caller's again then.
type Client interface {
	Reader
	Writer
	StatusClient
	SubResourceClientConstructor

	// Scheme returns the scheme that tells the kinds of typed objects.
	Scheme() *runtime.Scheme
	// RESTMapper returns the mapper that tells which resource serves a kind.
	RESTMapper() meta.RESTMapper
	// GroupVersionKindFor tells the kind of obj, as apiutil.GVKForObject does.
	GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error)
	// IsObjectNamespaced reports whether objects of obj's kind live in a namespace. It may ask the server.
	IsObjectNamespaced(obj runtime.Object) (bool, error)
}

// WithWatch is a Client that can also watch.
type WithWatch interface {
	Client
	// Watch watches the objects that opts select. list tells the kind and is only read. The watch ends when ctx is done, when
	// its Stop is called, or when the server ends it; the caller must read its channel or stop it.
	Watch(ctx context.Context, list ObjectList, opts ...ListOption) (watch.Interface, error)
}
