// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/event"
)

// And lets an event through if all predicates do. It asks them in order and
// stops at the first that does not.
func And[object any](predicates ...TypedPredicate[object]) TypedPredicate[object] {
	return and[object](predicates)
}

type and[object any] []TypedPredicate[object]

func (a and[object]) Create(e event.TypedCreateEvent[object]) bool {
	for _, p := range a {
		if !p.Create(e) {
			return false
		}
	}
	return true
}

func (a and[object]) Update(e event.TypedUpdateEvent[object]) bool {
	for _, p := range a {
		if !p.Update(e) {
			return false
		}
	}
	return true
}

func (a and[object]) Delete(e event.TypedDeleteEvent[object]) bool {
	for _, p := range a {
		if !p.Delete(e) {
			return false
		}
	}
	return true
}

func (a and[object]) Generic(e event.TypedGenericEvent[object]) bool {
	for _, p := range a {
		if !p.Generic(e) {
			return false
		}
	}
	return true
}

func (a and[object]) inline() bool { return allInline(a) }

// Or lets an event through if any predicate does. It asks them in order and
// stops at the first that does; without predicates nothing passes.
func Or[object any](predicates ...TypedPredicate[object]) TypedPredicate[object] {
	return or[object](predicates)
}

type or[object any] []TypedPredicate[object]

func (o or[object]) Create(e event.TypedCreateEvent[object]) bool {
	for _, p := range o {
		if p.Create(e) {
			return true
		}
	}
	return false
}

func (o or[object]) Update(e event.TypedUpdateEvent[object]) bool {
	for _, p := range o {
		if p.Update(e) {
			return true
		}
	}
	return false
}

func (o or[object]) Delete(e event.TypedDeleteEvent[object]) bool {
	for _, p := range o {
		if p.Delete(e) {
			return true
		}
	}
	return false
}

func (o or[object]) Generic(e event.TypedGenericEvent[object]) bool {
	for _, p := range o {
		if p.Generic(e) {
			return true
		}
	}
	return false
}

func (o or[object]) inline() bool { return allInline(o) }

// Not lets an event through if the predicate does not.
func Not[object any](predicate TypedPredicate[object]) TypedPredicate[object] {
	return not[object]{predicate}
}

type not[object any] struct{ predicate TypedPredicate[object] }

func (n not[object]) Create(e event.TypedCreateEvent[object]) bool   { return !n.predicate.Create(e) }
func (n not[object]) Update(e event.TypedUpdateEvent[object]) bool   { return !n.predicate.Update(e) }
func (n not[object]) Delete(e event.TypedDeleteEvent[object]) bool   { return !n.predicate.Delete(e) }
func (n not[object]) Generic(e event.TypedGenericEvent[object]) bool { return !n.predicate.Generic(e) }

func (n not[object]) inline() bool { return Inline(n.predicate) }

// LabelSelectorPredicate lets events through whose object's labels the
// selector matches; an update is judged by the new object. It fails if the
// selector is not valid.
func LabelSelectorPredicate(s metav1.LabelSelector) (Predicate, error) {
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return Funcs{}, err
	}
	return bySelector{selector}, nil
}

type bySelector struct{ selector labels.Selector }

func (s bySelector) matches(obj client.Object) bool {
	return s.selector.Matches(labels.Set(obj.GetLabels()))
}

func (s bySelector) Create(e event.CreateEvent) bool   { return s.matches(e.Object) }
func (s bySelector) Update(e event.UpdateEvent) bool   { return s.matches(e.ObjectNew) }
func (s bySelector) Delete(e event.DeleteEvent) bool   { return s.matches(e.Object) }
func (s bySelector) Generic(e event.GenericEvent) bool { return s.matches(e.Object) }

func (bySelector) inline() bool { return true }

var ownPackage = reflect.TypeFor[Funcs]().PkgPath()

// Inline tells whether a predicate is one of this package and calls no
// function of a user, so that it never blocks and never panics. A cache may
// then ask it while it changes its store.
//
// The type itself is asked for, not its methods: a user's type that embeds
// one of ours has its methods too.
func Inline[object any](p TypedPredicate[object]) bool {
	t := reflect.TypeOf(p)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.PkgPath() != ownPackage {
		return false
	}
	own, ok := p.(interface{ inline() bool })
	return ok && own.inline()
}

func allInline[object any](ps []TypedPredicate[object]) bool {
	for _, p := range ps {
		if !Inline(p) {
			return false
		}
	}
	return true
}
