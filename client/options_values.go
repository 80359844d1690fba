// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// DryRunAll makes a write a dry run: the server does everything but store.
var DryRunAll = dryRunAll{}

type dryRunAll struct{}

// stages is a new slice each time: callers may append to the options they get.
func (dryRunAll) stages() []string { return []string{metav1.DryRunAll} }

func (d dryRunAll) ApplyToCreate(o *CreateOptions)                       { o.DryRun = d.stages() }
func (d dryRunAll) ApplyToUpdate(o *UpdateOptions)                       { o.DryRun = d.stages() }
func (d dryRunAll) ApplyToPatch(o *PatchOptions)                         { o.DryRun = d.stages() }
func (d dryRunAll) ApplyToApply(o *ApplyOptions)                         { o.DryRun = d.stages() }
func (d dryRunAll) ApplyToDelete(o *DeleteOptions)                       { o.DryRun = d.stages() }
func (d dryRunAll) ApplyToDeleteAllOf(o *DeleteAllOfOptions)             { o.DryRun = d.stages() }
func (d dryRunAll) ApplyToSubResourceCreate(o *SubResourceCreateOptions) { o.DryRun = d.stages() }
func (d dryRunAll) ApplyToSubResourceUpdate(o *SubResourceUpdateOptions) { o.DryRun = d.stages() }
func (d dryRunAll) ApplyToSubResourcePatch(o *SubResourcePatchOptions)   { o.DryRun = d.stages() }
func (d dryRunAll) ApplyToSubResourceApply(o *SubResourceApplyOptions)   { o.DryRun = d.stages() }

// FieldOwner sets the name under which the server records who set which field.
type FieldOwner string

// ApplyToCreate sets the field manager.
func (f FieldOwner) ApplyToCreate(o *CreateOptions) { o.FieldManager = string(f) }

// ApplyToUpdate sets the field manager.
func (f FieldOwner) ApplyToUpdate(o *UpdateOptions) { o.FieldManager = string(f) }

// ApplyToPatch sets the field manager.
func (f FieldOwner) ApplyToPatch(o *PatchOptions) { o.FieldManager = string(f) }

// ApplyToApply sets the field manager.
func (f FieldOwner) ApplyToApply(o *ApplyOptions) { o.FieldManager = string(f) }

// ApplyToSubResourceCreate sets the field manager.
func (f FieldOwner) ApplyToSubResourceCreate(o *SubResourceCreateOptions) { o.FieldManager = string(f) }

// ApplyToSubResourceUpdate sets the field manager.
func (f FieldOwner) ApplyToSubResourceUpdate(o *SubResourceUpdateOptions) { o.FieldManager = string(f) }

// ApplyToSubResourcePatch sets the field manager.
func (f FieldOwner) ApplyToSubResourcePatch(o *SubResourcePatchOptions) { o.FieldManager = string(f) }

// ApplyToSubResourceApply sets the field manager.
func (f FieldOwner) ApplyToSubResourceApply(o *SubResourceApplyOptions) { o.FieldManager = string(f) }

// FieldValidation tells the server what to do about unknown and doubled fields: Ignore, Warn or Strict.
type FieldValidation string

// ApplyToCreate sets the field validation.
func (f FieldValidation) ApplyToCreate(o *CreateOptions) { o.FieldValidation = string(f) }

// ApplyToUpdate sets the field validation.
func (f FieldValidation) ApplyToUpdate(o *UpdateOptions) { o.FieldValidation = string(f) }

// ApplyToPatch sets the field validation.
func (f FieldValidation) ApplyToPatch(o *PatchOptions) { o.FieldValidation = string(f) }

// ApplyToSubResourceCreate sets the field validation.
func (f FieldValidation) ApplyToSubResourceCreate(o *SubResourceCreateOptions) {
	o.FieldValidation = string(f)
}

// ApplyToSubResourceUpdate sets the field validation.
func (f FieldValidation) ApplyToSubResourceUpdate(o *SubResourceUpdateOptions) {
	o.FieldValidation = string(f)
}

// ApplyToSubResourcePatch sets the field validation.
func (f FieldValidation) ApplyToSubResourcePatch(o *SubResourcePatchOptions) {
	o.FieldValidation = string(f)
}

// ForceOwnership makes a server-side apply take fields over from other managers instead of failing with a conflict.
var ForceOwnership = forceOwnership{}

type forceOwnership struct{}

func (forceOwnership) ApplyToPatch(o *PatchOptions)                       { o.Force = new(true) }
func (forceOwnership) ApplyToApply(o *ApplyOptions)                       { o.Force = new(true) }
func (forceOwnership) ApplyToSubResourcePatch(o *SubResourcePatchOptions) { o.Force = new(true) }
func (forceOwnership) ApplyToSubResourceApply(o *SubResourceApplyOptions) { o.Force = new(true) }

// DisableReadYourWritesConsistency switches read-your-writes off for one read or write: see the field of this name in the
// options of each verb.
const DisableReadYourWritesConsistency = disableReadYourWritesConsistency(true)

type disableReadYourWritesConsistency bool

func (d disableReadYourWritesConsistency) ApplyToGet(o *GetOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

func (d disableReadYourWritesConsistency) ApplyToList(o *ListOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

func (d disableReadYourWritesConsistency) ApplyToCreate(o *CreateOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

func (d disableReadYourWritesConsistency) ApplyToUpdate(o *UpdateOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

func (d disableReadYourWritesConsistency) ApplyToPatch(o *PatchOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

func (d disableReadYourWritesConsistency) ApplyToApply(o *ApplyOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

func (d disableReadYourWritesConsistency) ApplyToDelete(o *DeleteOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

func (d disableReadYourWritesConsistency) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	o.DeleteOptions.DisableReadYourWritesConsistency = bool(d)
}

func (d disableReadYourWritesConsistency) ApplyToSubResourceCreate(o *SubResourceCreateOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

func (d disableReadYourWritesConsistency) ApplyToSubResourceUpdate(o *SubResourceUpdateOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

func (d disableReadYourWritesConsistency) ApplyToSubResourcePatch(o *SubResourcePatchOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

func (d disableReadYourWritesConsistency) ApplyToSubResourceApply(o *SubResourceApplyOptions) {
	o.DisableReadYourWritesConsistency = bool(d)
}

// UnsafeDisableDeepCopy makes a cached read return the cache's own content, which must not be changed in any way. Live
// reads ignore it.
const UnsafeDisableDeepCopy = UnsafeDisableDeepCopyOption(true)

// UnsafeDisableDeepCopyOption tells whether a cached read returns the cache's own content.
type UnsafeDisableDeepCopyOption bool

// ApplyToGet sets the option.
func (d UnsafeDisableDeepCopyOption) ApplyToGet(o *GetOptions) {
	o.UnsafeDisableDeepCopy = new(bool(d))
}

// ApplyToList sets the option.
func (d UnsafeDisableDeepCopyOption) ApplyToList(o *ListOptions) {
	o.UnsafeDisableDeepCopy = new(bool(d))
}

// GracePeriodSeconds sets how long an object may take to end itself; 0 means none.
type GracePeriodSeconds int64

// ApplyToDelete sets the grace period.
func (s GracePeriodSeconds) ApplyToDelete(o *DeleteOptions) { o.GracePeriodSeconds = new(int64(s)) }

// ApplyToDeleteAllOf sets the grace period.
func (s GracePeriodSeconds) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	s.ApplyToDelete(&o.DeleteOptions)
}

// Preconditions must hold for an object that is deleted, else the delete fails with a conflict.
type Preconditions metav1.Preconditions

// ApplyToDelete sets the preconditions.
func (p Preconditions) ApplyToDelete(o *DeleteOptions) {
	o.Preconditions = new(metav1.Preconditions(p))
}

// ApplyToDeleteAllOf sets the preconditions.
func (p Preconditions) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { p.ApplyToDelete(&o.DeleteOptions) }

// PropagationPolicy tells what becomes of the dependents of a deleted object.
type PropagationPolicy metav1.DeletionPropagation

// ApplyToDelete sets the policy.
func (p PropagationPolicy) ApplyToDelete(o *DeleteOptions) {
	o.PropagationPolicy = new(metav1.DeletionPropagation(p))
}

// ApplyToDeleteAllOf sets the policy.
func (p PropagationPolicy) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	p.ApplyToDelete(&o.DeleteOptions)
}

// InNamespace restricts a list to one namespace; empty means all.
type InNamespace string

// ApplyToList sets the namespace.
func (n InNamespace) ApplyToList(o *ListOptions) { o.Namespace = string(n) }

// ApplyToDeleteAllOf sets the namespace.
func (n InNamespace) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { n.ApplyToList(&o.ListOptions) }

// AsSelector returns a field selector for the namespace; an empty one selects everything.
func (n InNamespace) AsSelector() fields.Selector {
	if n == "" {
		return fields.Everything()
	}
	return fields.SelectorFromSet(fields.Set{"metadata.namespace": string(n)})
}

// Limit is the most items that a list returns; 0 means no limit.
type Limit int64

// ApplyToList sets the limit.
func (l Limit) ApplyToList(o *ListOptions) { o.Limit = int64(l) }

// Continue is the token with which a live list goes on where an earlier one ended.
type Continue string

// ApplyToList sets the token.
func (c Continue) ApplyToList(o *ListOptions) { o.Continue = string(c) }

// MatchingLabels selects objects that have all of these labels with these values. It is added to the label selectors that
// other options have set.
type MatchingLabels map[string]string

// ApplyToList adds the labels to the label selector.
func (m MatchingLabels) ApplyToList(o *ListOptions) {
	selector := labels.SelectorFromValidatedSet(labels.Set(m))
	if o.LabelSelector == nil {
		o.LabelSelector = selector
		return
	}
	requirements, _ := selector.Requirements()
	o.LabelSelector = o.LabelSelector.Add(requirements...)
}

// ApplyToDeleteAllOf adds the labels to the label selector.
func (m MatchingLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// HasLabels selects objects that have all of these labels, whatever their values. It is added to the label selectors that
// other options have set. A name that cannot be a label selects nothing.
type HasLabels []string

// ApplyToList adds the labels to the label selector.
func (h HasLabels) ApplyToList(o *ListOptions) {
	selector := labels.NewSelector()
	if o.LabelSelector != nil {
		selector = o.LabelSelector
	}
	for _, name := range h {
		requirement, err := labels.NewRequirement(name, selection.Exists, nil)
		if err != nil {
			selector = labels.Nothing() // dropping the name instead would select more than was asked for
			break
		}
		selector = selector.Add(*requirement)
	}
	o.LabelSelector = selector
}

// ApplyToDeleteAllOf adds the labels to the label selector.
func (h HasLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { h.ApplyToList(&o.ListOptions) }

// MatchingLabelsSelector selects by a label selector, in place of the label selectors that earlier options have set. A nil
// selector selects nothing.
type MatchingLabelsSelector struct {
	labels.Selector
}

// ApplyToList sets the label selector.
func (m MatchingLabelsSelector) ApplyToList(o *ListOptions) {
	o.LabelSelector = m.Selector
	if o.LabelSelector == nil {
		o.LabelSelector = labels.Nothing()
	}
}

// ApplyToDeleteAllOf sets the label selector.
func (m MatchingLabelsSelector) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	m.ApplyToList(&o.ListOptions)
}

// MatchingFields selects objects whose fields have these values, in place of the field selectors that earlier options have
// set. An empty map selects everything.
type MatchingFields fields.Set

// ApplyToList sets the field selector.
func (m MatchingFields) ApplyToList(o *ListOptions) {
	o.FieldSelector = fields.Set(m).AsSelector()
}

// ApplyToDeleteAllOf sets the field selector.
func (m MatchingFields) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// MatchingFieldsSelector selects by a field selector, in place of the field selectors that earlier options have set. A nil
// selector selects nothing.
type MatchingFieldsSelector struct {
	fields.Selector
}

// ApplyToList sets the field selector.
func (m MatchingFieldsSelector) ApplyToList(o *ListOptions) {
	o.FieldSelector = m.Selector
	if o.FieldSelector == nil {
		o.FieldSelector = fields.Nothing()
	}
}

// ApplyToDeleteAllOf sets the field selector.
func (m MatchingFieldsSelector) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	m.ApplyToList(&o.ListOptions)
}

// MergeFromWithOptimisticLock makes a patch fail with a conflict if the object was changed since the one it is made from
// was read.
type MergeFromWithOptimisticLock struct{}

// ApplyToMergeFrom switches the lock on.
func (MergeFromWithOptimisticLock) ApplyToMergeFrom(o *MergeFromOptions) { o.OptimisticLock = true }
