// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// GetOption changes one Get.
type GetOption interface {
	// ApplyToGet writes the option into the options of a Get.
	ApplyToGet(*GetOptions)
}

// ListOption changes one List or Watch.
type ListOption interface {
	// ApplyToList writes the option into the options of a List.
	ApplyToList(*ListOptions)
}

// GetOptions are the options of a Get.
type GetOptions struct {
	// Raw is sent as it is by a live Get and ignored by a cached one.
	Raw *metav1.GetOptions

	// UnsafeDisableDeepCopy makes a cached Get return the cache's own content: it must not be changed in any way. Nil means
	// what the cache was told. A live Get ignores it.
	UnsafeDisableDeepCopy *bool

	// DisableReadYourWritesConsistency makes a cached Get return what the store holds, without regard to writes of this
	// client that the store has not seen yet.
	DisableReadYourWritesConsistency bool
}

// ApplyToGet writes the fields that are set into other.
func (o *GetOptions) ApplyToGet(other *GetOptions) {
	set(&other.Raw, o.Raw)
	set(&other.UnsafeDisableDeepCopy, o.UnsafeDisableDeepCopy)
	set(&other.DisableReadYourWritesConsistency, o.DisableReadYourWritesConsistency)
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *GetOptions) ApplyOptions(opts []GetOption) *GetOptions {
	for _, opt := range opts {
		opt.ApplyToGet(o)
	}
	return o
}

// AsGetOptions returns what is sent to the server. Nil stands for no options.
func (o *GetOptions) AsGetOptions() *metav1.GetOptions {
	if o == nil {
		return &metav1.GetOptions{}
	}
	return copyRaw(o.Raw)
}

// ListOptions are the options of a List, and with a field selector, label selector and namespace those of a Watch and a
// DeleteAllOf.
type ListOptions struct {
	// LabelSelector selects by label; nil selects everything, labels.Nothing() nothing.
	LabelSelector labels.Selector

	// FieldSelector selects by field; nil selects everything, fields.Nothing() nothing. A live request can name only the
	// fields that the server supports for the kind, a cached one only those that were indexed.
	FieldSelector fields.Selector

	// Namespace restricts the list to one namespace; empty means all of them. It is ignored for kinds without one.
	Namespace string

	// Limit is the most items that are returned; 0 means no limit. A live List then returns a token for the next call, a
	// cached one does not.
	Limit int64

	// Continue is the token of an earlier live List with the same options. A cached List refuses it.
	Continue string

	// UnsafeDisableDeepCopy makes a cached List return the cache's own content: it must not be changed in any way. Nil
	// means what the cache was told. A live List ignores it.
	UnsafeDisableDeepCopy *bool

	// DisableReadYourWritesConsistency makes a cached List return what the store holds, without regard to writes of this
	// client that the store has not seen yet.
	DisableReadYourWritesConsistency bool

	// Raw is the base of what a live List sends; the fields above win where they are set. A cached List ignores it.
	Raw *metav1.ListOptions
}

// ApplyToList writes the fields that are set into other.
func (o *ListOptions) ApplyToList(other *ListOptions) {
	if o.LabelSelector != nil {
		other.LabelSelector = o.LabelSelector
	}
	if o.FieldSelector != nil {
		other.FieldSelector = o.FieldSelector
	}
	set(&other.Namespace, o.Namespace)
	set(&other.Limit, o.Limit)
	set(&other.Continue, o.Continue)
	set(&other.UnsafeDisableDeepCopy, o.UnsafeDisableDeepCopy)
	set(&other.DisableReadYourWritesConsistency, o.DisableReadYourWritesConsistency)
	set(&other.Raw, o.Raw)
}

// ApplyOptions writes opts into o in their order and returns o.
func (o *ListOptions) ApplyOptions(opts []ListOption) *ListOptions {
	for _, opt := range opts {
		opt.ApplyToList(o)
	}
	return o
}

// nothingSelector is how "select nothing" is written to the server: the selectors of apimachinery that match nothing print
// as the empty string, which the server reads as everything.
const nothingSelector = "nothing,!nothing"

// AsListOptions returns what is sent to the server, without the namespace. Nil stands for no options. A selector that
// selects nothing is written as a label selector that no object can meet.
func (o *ListOptions) AsListOptions() *metav1.ListOptions {
	if o == nil {
		return &metav1.ListOptions{}
	}
	raw := copyRaw(o.Raw)
	if o.LabelSelector != nil {
		raw.LabelSelector = o.LabelSelector.String()
	}
	if o.FieldSelector != nil {
		raw.FieldSelector = o.FieldSelector.String()
	}
	if o.selectsNothing() {
		raw.LabelSelector, raw.FieldSelector = nothingSelector, ""
	}
	set(&raw.Limit, o.Limit)
	set(&raw.Continue, o.Continue)
	return raw
}

// selectsNothing reports whether one of the selectors is apimachinery's "nothing".
func (o *ListOptions) selectsNothing() bool {
	if o.LabelSelector != nil {
		if _, selectable := o.LabelSelector.Requirements(); !selectable {
			return true
		}
	}
	return o.FieldSelector != nil && o.FieldSelector.String() == "" && !o.FieldSelector.Empty()
}
