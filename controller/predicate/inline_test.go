// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package predicate_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/predicate"
)

func always(answer bool) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(client.Object) bool { return answer })
}

// embedding is a user's predicate: it has the methods of ours, and may block.
type embedding struct {
	predicate.GenerationChangedPredicate
}

func (embedding) Update(event.UpdateEvent) bool { panic("user code") }

// TestInline wants only predicates of ours that call no user's function to be
// inline.
func TestInline(t *testing.T) {
	selector, _ := predicate.LabelSelectorPredicate(metav1.LabelSelector{})
	own := predicate.GenerationChangedPredicate{}
	for name, c := range map[string]struct {
		p    predicate.Predicate
		want bool
	}{
		"own":                {own, true},
		"own, pointer":       {&own, true},
		"version":            {predicate.ResourceVersionChangedPredicate{}, true},
		"selector":           {selector, true},
		"and of own":         {predicate.And[client.Object](own, predicate.Not[client.Object](own), predicate.Or[client.Object](own)), true},
		"functions":          {always(true), false},
		"own with functions": {predicate.GenerationChangedPredicate{TypedFuncs: predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return true }}}, false},
		"and with functions": {predicate.And[client.Object](own, always(true)), false},
		"not of functions":   {predicate.Not(always(true)), false},
		"user's, embedding":  {embedding{}, false},
		"nil":                {nil, false},
	} {
		if got := predicate.Inline(c.p); got != c.want {
			t.Errorf("%s: inline %t, want %t", name, got, c.want)
		}
	}
}
