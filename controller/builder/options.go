// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
)

// ForOption changes what For does.
type ForOption interface {
	ApplyToFor(*ForInput)
}

// OwnsOption changes what Owns does.
type OwnsOption interface {
	ApplyToOwns(*OwnsInput)
}

// WatchesOption changes what Watches does.
type WatchesOption interface {
	ApplyToWatches(untypedWatchesInput)
}

// ForInput is what For was told.
type ForInput struct {
	object     client.Object
	predicates []predicate.Predicate
	form       projection
	called     bool
}

// OwnsInput is what one Owns was told.
type OwnsInput struct {
	object     client.Object
	predicates []predicate.Predicate
	form       projection
	everyOwner bool
}

// WatchesInput is what one Watches was told.
type WatchesInput[request comparable] struct {
	object     client.Object
	handler    handler.TypedEventHandler[client.Object, request]
	predicates []predicate.Predicate
	form       projection
}

// untypedWatchesInput is what a WatchesOption may change, whatever the type of
// the keys.
type untypedWatchesInput interface {
	addPredicates([]predicate.Predicate)
	setForm(projection)
}

func (w *WatchesInput[request]) addPredicates(ps []predicate.Predicate) {
	w.predicates = append(w.predicates, ps...)
}

func (w *WatchesInput[request]) setForm(f projection) { w.form = f }

// Predicates are asked in order before the handler of the one watch that they
// are given to.
type Predicates struct {
	predicates []predicate.Predicate
}

// WithPredicates gives predicates to For, Owns or Watches.
func WithPredicates(predicates ...predicate.Predicate) Predicates {
	return Predicates{predicates: predicates}
}

var (
	_ ForOption     = Predicates{}
	_ OwnsOption    = Predicates{}
	_ WatchesOption = Predicates{}
)

// ApplyToFor implements ForOption.
func (w Predicates) ApplyToFor(opts *ForInput) {
	opts.predicates = append(opts.predicates, w.predicates...)
}

// ApplyToOwns implements OwnsOption.
func (w Predicates) ApplyToOwns(opts *OwnsInput) {
	opts.predicates = append(opts.predicates, w.predicates...)
}

// ApplyToWatches implements WatchesOption.
func (w Predicates) ApplyToWatches(opts untypedWatchesInput) {
	opts.addPredicates(w.predicates)
}

// projection is the form in which a kind is watched.
type projection uint8

const (
	asIs projection = iota
	asMetadata
)

// projectAs sets the form of a watch.
type projectAs projection

// OnlyMetadata watches the kind as *metav1.PartialObjectMetadata: labels,
// annotations, owners and the like, but neither spec nor status.
var OnlyMetadata = projectAs(asMetadata)

var (
	_ ForOption     = OnlyMetadata
	_ OwnsOption    = OnlyMetadata
	_ WatchesOption = OnlyMetadata
)

// ApplyToFor implements ForOption.
func (p projectAs) ApplyToFor(opts *ForInput) { opts.form = projection(p) }

// ApplyToOwns implements OwnsOption.
func (p projectAs) ApplyToOwns(opts *OwnsInput) { opts.form = projection(p) }

// ApplyToWatches implements WatchesOption.
func (p projectAs) ApplyToWatches(opts untypedWatchesInput) { opts.setForm(projection(p)) }

// matchEveryOwner makes Owns queue all owners.
type matchEveryOwner struct{}

// MatchEveryOwner makes Owns queue every owner of the reconciled kind, not
// only the one that is the object's controller.
var MatchEveryOwner = &matchEveryOwner{}

var _ OwnsOption = MatchEveryOwner

// ApplyToOwns implements OwnsOption.
func (*matchEveryOwner) ApplyToOwns(opts *OwnsInput) { opts.everyOwner = true }
