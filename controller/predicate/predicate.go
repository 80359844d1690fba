// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/event"
)

// Predicate judges events of objects of any API kind.
type Predicate = TypedPredicate[client.Object]

// TypedPredicate judges events: true lets the event through. It must not
// change the objects and may be called by several goroutines at once.
type TypedPredicate[object any] interface {
	Create(event.TypedCreateEvent[object]) bool
	Delete(event.TypedDeleteEvent[object]) bool
	Update(event.TypedUpdateEvent[object]) bool
	Generic(event.TypedGenericEvent[object]) bool
}

// Funcs is a Predicate made of functions.
type Funcs = TypedFuncs[client.Object]

// TypedFuncs is a TypedPredicate made of functions. A nil function lets every
// event of its kind through.
type TypedFuncs[object any] struct {
	CreateFunc  func(event.TypedCreateEvent[object]) bool
	DeleteFunc  func(event.TypedDeleteEvent[object]) bool
	UpdateFunc  func(event.TypedUpdateEvent[object]) bool
	GenericFunc func(event.TypedGenericEvent[object]) bool
}

var _ Predicate = Funcs{}

// Create implements TypedPredicate.
func (f TypedFuncs[object]) Create(e event.TypedCreateEvent[object]) bool {
	return f.CreateFunc == nil || f.CreateFunc(e)
}

// Delete implements TypedPredicate.
func (f TypedFuncs[object]) Delete(e event.TypedDeleteEvent[object]) bool {
	return f.DeleteFunc == nil || f.DeleteFunc(e)
}

// Update implements TypedPredicate.
func (f TypedFuncs[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return f.UpdateFunc == nil || f.UpdateFunc(e)
}

// Generic implements TypedPredicate.
func (f TypedFuncs[object]) Generic(e event.TypedGenericEvent[object]) bool {
	return f.GenericFunc == nil || f.GenericFunc(e)
}

func (f TypedFuncs[object]) inline() bool {
	return f.CreateFunc == nil && f.DeleteFunc == nil && f.UpdateFunc == nil && f.GenericFunc == nil
}

// NewPredicateFuncs judges every event by its object; an update by the new
// one.
func NewPredicateFuncs(filter func(object client.Object) bool) Funcs {
	return NewTypedPredicateFuncs(filter)
}

// NewTypedPredicateFuncs is NewPredicateFuncs for one type.
func NewTypedPredicateFuncs[object any](filter func(object object) bool) TypedFuncs[object] {
	return TypedFuncs[object]{
		CreateFunc:  func(e event.TypedCreateEvent[object]) bool { return filter(e.Object) },
		DeleteFunc:  func(e event.TypedDeleteEvent[object]) bool { return filter(e.Object) },
		UpdateFunc:  func(e event.TypedUpdateEvent[object]) bool { return filter(e.ObjectNew) },
		GenericFunc: func(e event.TypedGenericEvent[object]) bool { return filter(e.Object) },
	}
}
