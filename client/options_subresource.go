// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// SubResourceGetOption changes one Get of a sub-resource.
type SubResourceGetOption interface {
	// ApplyToSubResourceGet writes the option into the options.
	ApplyToSubResourceGet(*SubResourceGetOptions)
}

// SubResourceCreateOption changes one Create of a sub-resource.
type SubResourceCreateOption interface {
	// ApplyToSubResourceCreate writes the option into the options.
	ApplyToSubResourceCreate(*SubResourceCreateOptions)
}

// SubResourceUpdateOption changes one Update of a sub-resource.
type SubResourceUpdateOption interface {
	// ApplyToSubResourceUpdate writes the option into the options.
	ApplyToSubResourceUpdate(*SubResourceUpdateOptions)
}

// SubResourcePatchOption changes one Patch of a sub-resource.
type SubResourcePatchOption interface {
	// ApplyToSubResourcePatch writes the option into the options.
	ApplyToSubResourcePatch(*SubResourcePatchOptions)
}

// SubResourceApplyOption changes one Apply to a sub-resource.
type SubResourceApplyOption interface {
	// ApplyToSubResourceApply writes the option into the options.
	ApplyToSubResourceApply(*SubResourceApplyOptions)
}

// SubResourceUpdateAndPatchOption changes an Update or a Patch of a sub-resource.
type SubResourceUpdateAndPatchOption interface {
	SubResourceUpdateOption
	SubResourcePatchOption
}

// SubResourceGetOptions are the options of a Get of a sub-resource.
type SubResourceGetOptions struct {
	// Raw is sent as it is.
	Raw *metav1.GetOptions
}

// ApplyToSubResourceGet writes the fields that are set into other.
func (o *SubResourceGetOptions) ApplyToSubResourceGet(other *SubResourceGetOptions) {
	set(&other.Raw, o.Raw)
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *SubResourceGetOptions) ApplyOptions(opts []SubResourceGetOption) *SubResourceGetOptions {
	for _, opt := range opts {
		opt.ApplyToSubResourceGet(o)
	}
	return o
}

// AsGetOptions returns what is sent to the server. Nil stands for no options.
func (o *SubResourceGetOptions) AsGetOptions() *metav1.GetOptions {
	if o == nil {
		return &metav1.GetOptions{}
	}
	return copyRaw(o.Raw)
}

// SubResourceCreateOptions are the options of a Create of a sub-resource.
type SubResourceCreateOptions struct {
	CreateOptions
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *SubResourceCreateOptions) ApplyOptions(opts []SubResourceCreateOption) *SubResourceCreateOptions {
	for _, opt := range opts {
		opt.ApplyToSubResourceCreate(o)
	}
	return o
}

// ApplyToSubResourceCreate writes the fields that are set into other.
func (o *SubResourceCreateOptions) ApplyToSubResourceCreate(other *SubResourceCreateOptions) {
	o.ApplyToCreate(&other.CreateOptions)
}

// SubResourceUpdateOptions are the options of an Update of a sub-resource.
type SubResourceUpdateOptions struct {
	UpdateOptions

	// SubResourceBody is sent instead of the object and filled with the answer. Nil means the object itself.
	SubResourceBody Object
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *SubResourceUpdateOptions) ApplyOptions(opts []SubResourceUpdateOption) *SubResourceUpdateOptions {
	for _, opt := range opts {
		opt.ApplyToSubResourceUpdate(o)
	}
	return o
}

// ApplyToSubResourceUpdate writes the fields that are set into other.
func (o *SubResourceUpdateOptions) ApplyToSubResourceUpdate(other *SubResourceUpdateOptions) {
	o.ApplyToUpdate(&other.UpdateOptions)
	if o.SubResourceBody != nil {
		other.SubResourceBody = o.SubResourceBody
	}
}

// SubResourcePatchOptions are the options of a Patch of a sub-resource.
type SubResourcePatchOptions struct {
	PatchOptions

	// SubResourceBody is what the patch is made from and what is filled with the answer. Nil means the object itself.
	SubResourceBody Object
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *SubResourcePatchOptions) ApplyOptions(opts []SubResourcePatchOption) *SubResourcePatchOptions {
	for _, opt := range opts {
		opt.ApplyToSubResourcePatch(o)
	}
	return o
}

// ApplyToSubResourcePatch writes the fields that are set into other.
func (o *SubResourcePatchOptions) ApplyToSubResourcePatch(other *SubResourcePatchOptions) {
	o.ApplyToPatch(&other.PatchOptions)
	if o.SubResourceBody != nil {
		other.SubResourceBody = o.SubResourceBody
	}
}

// SubResourceApplyOptions are the options of an Apply to a sub-resource.
type SubResourceApplyOptions struct {
	ApplyOptions

	// SubResourceBody is sent instead of the apply configuration that names the object, and filled with the answer. Nil
	// means that configuration itself.
	SubResourceBody runtime.ApplyConfiguration
}

// ApplyOpts writes opts into o in their order and returns o.
func (o *SubResourceApplyOptions) ApplyOpts(opts []SubResourceApplyOption) *SubResourceApplyOptions {
	for _, opt := range opts {
		opt.ApplyToSubResourceApply(o)
	}
	return o
}

// ApplyToSubResourceApply writes the fields that are set into other.
func (o *SubResourceApplyOptions) ApplyToSubResourceApply(other *SubResourceApplyOptions) {
	o.ApplyToApply(&other.ApplyOptions)
	if o.SubResourceBody != nil {
		other.SubResourceBody = o.SubResourceBody
	}
}

// WithSubResourceBody makes an Update or Patch of a sub-resource send body instead of the object that owns the
// sub-resource, as sub-resources with a kind of their own need: scale, for one.
func WithSubResourceBody(body Object) SubResourceUpdateAndPatchOption {
	return subResourceBody{body}
}

type subResourceBody struct{ body Object }

func (b subResourceBody) ApplyToSubResourceUpdate(o *SubResourceUpdateOptions) {
	o.SubResourceBody = b.body
}

func (b subResourceBody) ApplyToSubResourcePatch(o *SubResourcePatchOptions) {
	o.SubResourceBody = b.body
}
