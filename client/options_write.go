// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// CreateOption changes one Create.
type CreateOption interface {
	// ApplyToCreate writes the option into the options of a Create.
	ApplyToCreate(*CreateOptions)
}

// UpdateOption changes one Update.
type UpdateOption interface {
	// ApplyToUpdate writes the option into the options of an Update.
	ApplyToUpdate(*UpdateOptions)
}

// PatchOption changes one Patch.
type PatchOption interface {
	// ApplyToPatch writes the option into the options of a Patch.
	ApplyToPatch(*PatchOptions)
}

// ApplyOption changes one Apply.
type ApplyOption interface {
	// ApplyToApply writes the option into the options of an Apply.
	ApplyToApply(*ApplyOptions)
}

// CreateOptions are the options of a Create.
type CreateOptions struct {
	// DryRun names the stages that are run without storing; only metav1.DryRunAll exists. Empty means a real write.
	DryRun []string

	// FieldManager is the name under which the server records who set which field. Empty means one made of the user agent.
	FieldManager string

	// FieldValidation tells what the server does about unknown and doubled fields: Ignore, Warn or Strict. Empty means the
	// server's default.
	FieldValidation string

	// DisableReadYourWritesConsistency keeps this write out of what later cached reads take into account.
	DisableReadYourWritesConsistency bool

	// Raw is the base of what is sent; the fields above win where they are set.
	Raw *metav1.CreateOptions
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *CreateOptions) ApplyOptions(opts []CreateOption) *CreateOptions {
	for _, opt := range opts {
		opt.ApplyToCreate(o)
	}
	return o
}

// ApplyToCreate writes the fields that are set into other.
func (o *CreateOptions) ApplyToCreate(other *CreateOptions) {
	setSlice(&other.DryRun, o.DryRun)
	set(&other.FieldManager, o.FieldManager)
	set(&other.FieldValidation, o.FieldValidation)
	set(&other.DisableReadYourWritesConsistency, o.DisableReadYourWritesConsistency)
	set(&other.Raw, o.Raw)
}

// AsCreateOptions returns what is sent to the server. Nil stands for no options.
func (o *CreateOptions) AsCreateOptions() *metav1.CreateOptions {
	if o == nil {
		return &metav1.CreateOptions{}
	}
	raw := copyRaw(o.Raw)
	setSlice(&raw.DryRun, o.DryRun)
	set(&raw.FieldManager, o.FieldManager)
	set(&raw.FieldValidation, o.FieldValidation)
	return raw
}

// UpdateOptions are the options of an Update. The fields mean what those of CreateOptions mean.
type UpdateOptions struct {
	// DryRun names the stages that are run without storing; only metav1.DryRunAll exists.
	DryRun []string
	// FieldManager is the name under which the server records who set which field.
	FieldManager string
	// FieldValidation is Ignore, Warn or Strict.
	FieldValidation string
	// DisableReadYourWritesConsistency keeps this write out of what later cached reads take into account.
	DisableReadYourWritesConsistency bool
	// Raw is the base of what is sent; the fields above win where they are set.
	Raw *metav1.UpdateOptions
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *UpdateOptions) ApplyOptions(opts []UpdateOption) *UpdateOptions {
	for _, opt := range opts {
		opt.ApplyToUpdate(o)
	}
	return o
}

// ApplyToUpdate writes the fields that are set into other.
func (o *UpdateOptions) ApplyToUpdate(other *UpdateOptions) {
	setSlice(&other.DryRun, o.DryRun)
	set(&other.FieldManager, o.FieldManager)
	set(&other.FieldValidation, o.FieldValidation)
	set(&other.DisableReadYourWritesConsistency, o.DisableReadYourWritesConsistency)
	set(&other.Raw, o.Raw)
}

// AsUpdateOptions returns what is sent to the server. Nil stands for no options.
func (o *UpdateOptions) AsUpdateOptions() *metav1.UpdateOptions {
	if o == nil {
		return &metav1.UpdateOptions{}
	}
	raw := copyRaw(o.Raw)
	setSlice(&raw.DryRun, o.DryRun)
	set(&raw.FieldManager, o.FieldManager)
	set(&raw.FieldValidation, o.FieldValidation)
	return raw
}

// PatchOptions are the options of a Patch. The fields mean what those of CreateOptions mean.
type PatchOptions struct {
	// DryRun names the stages that are run without storing; only metav1.DryRunAll exists.
	DryRun []string
	// Force takes fields over from other managers; only a server-side apply may set it.
	Force *bool
	// FieldManager is the name under which the server records who set which field. A server-side apply must have one.
	FieldManager string
	// FieldValidation is Ignore, Warn or Strict.
	FieldValidation string
	// DisableReadYourWritesConsistency keeps this write out of what later cached reads take into account.
	DisableReadYourWritesConsistency bool
	// Raw is the base of what is sent; the fields above win where they are set.
	Raw *metav1.PatchOptions
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *PatchOptions) ApplyOptions(opts []PatchOption) *PatchOptions {
	for _, opt := range opts {
		opt.ApplyToPatch(o)
	}
	return o
}

// ApplyToPatch writes the fields that are set into other.
func (o *PatchOptions) ApplyToPatch(other *PatchOptions) {
	setSlice(&other.DryRun, o.DryRun)
	set(&other.Force, o.Force)
	set(&other.FieldManager, o.FieldManager)
	set(&other.FieldValidation, o.FieldValidation)
	set(&other.DisableReadYourWritesConsistency, o.DisableReadYourWritesConsistency)
	set(&other.Raw, o.Raw)
}

// AsPatchOptions returns what is sent to the server. Nil stands for no options.
func (o *PatchOptions) AsPatchOptions() *metav1.PatchOptions {
	if o == nil {
		return &metav1.PatchOptions{}
	}
	raw := copyRaw(o.Raw)
	setSlice(&raw.DryRun, o.DryRun)
	set(&raw.Force, o.Force)
	set(&raw.FieldManager, o.FieldManager)
	set(&raw.FieldValidation, o.FieldValidation)
	return raw
}

// ApplyOptions are the options of an Apply. The fields mean what those of PatchOptions mean. Field validation is not among
// them: the server validates every apply strictly.
type ApplyOptions struct {
	// DryRun names the stages that are run without storing; only metav1.DryRunAll exists.
	DryRun []string
	// Force takes fields over from other managers instead of failing with a conflict.
	Force *bool
	// FieldManager is the name under which the server records who set which field. An Apply must have one.
	FieldManager string
	// DisableReadYourWritesConsistency keeps this write out of what later cached reads take into account.
	DisableReadYourWritesConsistency bool
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *ApplyOptions) ApplyOptions(opts []ApplyOption) *ApplyOptions {
	for _, opt := range opts {
		opt.ApplyToApply(o)
	}
	return o
}

// ApplyToApply writes the fields that are set into other.
func (o *ApplyOptions) ApplyToApply(other *ApplyOptions) {
	setSlice(&other.DryRun, o.DryRun)
	set(&other.Force, o.Force)
	set(&other.FieldManager, o.FieldManager)
	set(&other.DisableReadYourWritesConsistency, o.DisableReadYourWritesConsistency)
}

// AsPatchOptions returns what is sent to the server. Nil stands for no options.
func (o *ApplyOptions) AsPatchOptions() *metav1.PatchOptions {
	if o == nil {
		return &metav1.PatchOptions{}
	}
	return &metav1.PatchOptions{DryRun: o.DryRun, Force: o.Force, FieldManager: o.FieldManager}
}

// set writes value to target unless it is the zero value.
func set[T comparable](target *T, value T) {
	var zero T
	if value != zero {
		*target = value
	}
}

// setSlice writes value to target unless it is nil.
func setSlice[T any](target *[]T, value []T) {
	if value != nil {
		*target = value
	}
}

// copyRaw returns a copy of the options that a caller gave as Raw, or empty ones: what a caller gave is never written to.
func copyRaw[T any](raw *T) *T {
	return new(ptr.Deref(raw, *new(T)))
}
