// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeleteOption changes one Delete.
type DeleteOption interface {
	// ApplyToDelete writes the option into the options of a Delete.
	ApplyToDelete(*DeleteOptions)
}

// DeleteAllOfOption changes one DeleteAllOf.
type DeleteAllOfOption interface {
	// ApplyToDeleteAllOf writes the option into the options of a DeleteAllOf.
	ApplyToDeleteAllOf(*DeleteAllOfOptions)
}

// DeleteOptions are the options of a Delete.
type DeleteOptions struct {
	// GracePeriodSeconds is how long the object may take to end itself; 0 means none, nil the kind's default.
	GracePeriodSeconds *int64

	// Preconditions must hold for the object, else the delete fails with a conflict.
	Preconditions *metav1.Preconditions

	// PropagationPolicy tells what becomes of the object's dependents. Nil means the kind's default.
	PropagationPolicy *metav1.DeletionPropagation

	// DryRun names the stages that are run without storing; only metav1.DryRunAll exists. Empty means a real delete.
	DryRun []string

	// DisableReadYourWritesConsistency keeps this delete out of what later cached reads take into account.
	DisableReadYourWritesConsistency bool

	// Raw is the base of what is sent; the fields above win where they are set.
	Raw *metav1.DeleteOptions
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *DeleteOptions) ApplyOptions(opts []DeleteOption) *DeleteOptions {
	for _, opt := range opts {
		opt.ApplyToDelete(o)
	}
	return o
}

// ApplyToDelete writes the fields that are set into other.
func (o *DeleteOptions) ApplyToDelete(other *DeleteOptions) {
	set(&other.GracePeriodSeconds, o.GracePeriodSeconds)
	set(&other.Preconditions, o.Preconditions)
	set(&other.PropagationPolicy, o.PropagationPolicy)
	setSlice(&other.DryRun, o.DryRun)
	set(&other.DisableReadYourWritesConsistency, o.DisableReadYourWritesConsistency)
	set(&other.Raw, o.Raw)
}

// AsDeleteOptions returns what is sent to the server. Nil stands for no options.
func (o *DeleteOptions) AsDeleteOptions() *metav1.DeleteOptions {
	if o == nil {
		return &metav1.DeleteOptions{}
	}
	raw := copyRaw(o.Raw)
	set(&raw.GracePeriodSeconds, o.GracePeriodSeconds)
	set(&raw.Preconditions, o.Preconditions)
	set(&raw.PropagationPolicy, o.PropagationPolicy)
	setSlice(&raw.DryRun, o.DryRun)
	return raw
}

// DeleteAllOfOptions are the options of a DeleteAllOf: which objects, and how each is deleted.
type DeleteAllOfOptions struct {
	ListOptions
	DeleteOptions
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *DeleteAllOfOptions) ApplyOptions(opts []DeleteAllOfOption) *DeleteAllOfOptions {
	for _, opt := range opts {
		opt.ApplyToDeleteAllOf(o)
	}
	return o
}

// ApplyToDeleteAllOf writes the fields that are set into other.
func (o *DeleteAllOfOptions) ApplyToDeleteAllOf(other *DeleteAllOfOptions) {
	o.ApplyToList(&other.ListOptions)
	o.ApplyToDelete(&other.DeleteOptions)
}
