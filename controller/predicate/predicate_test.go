// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/event"
)

func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "a", Name: "p", ResourceVersion: "1", Generation: 1,
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"n": "1"},
	}}
	for _, c := range change {
		c(p)
	}
	return p
}

// TestChanged asks each predicate of what changed about each kind of change.
func TestChanged(t *testing.T) {
	changes := map[string]func(*corev1.Pod){
		"nothing":     func(*corev1.Pod) {},
		"version":     func(p *corev1.Pod) { p.ResourceVersion = "2" },
		"generation":  func(p *corev1.Pod) { p.Generation = 2 },
		"labels":      func(p *corev1.Pod) { p.Labels = map[string]string{"l": "2"} },
		"annotations": func(p *corev1.Pod) { p.Annotations = nil },
	}
	predicates := map[string]Predicate{
		"version":     ResourceVersionChangedPredicate{},
		"generation":  GenerationChangedPredicate{},
		"labels":      LabelChangedPredicate{},
		"annotations": AnnotationChangedPredicate{},
	}
	for name, p := range predicates {
		for changed, change := range changes {
			e := event.UpdateEvent{ObjectOld: pod(), ObjectNew: pod(change)}
			if got, want := p.Update(e), name == changed; got != want {
				t.Errorf("%s predicate lets a change of %s through: %t, want %t", name, changed, got, want)
			}
		}
		if !p.Create(event.CreateEvent{Object: pod()}) || !p.Delete(event.DeleteEvent{Object: pod()}) || !p.Generic(event.GenericEvent{Object: pod()}) {
			t.Errorf("%s predicate drops something that is no update", name)
		}
		var none *corev1.Pod
		for _, e := range []event.UpdateEvent{{}, {ObjectOld: pod()}, {ObjectNew: pod()}, {ObjectOld: none, ObjectNew: pod()}} {
			if p.Update(e) {
				t.Errorf("%s predicate lets an update without both objects through", name)
			}
		}
	}
}

// TestEmptyMaps wants no labels and empty labels to be the same.
func TestEmptyMaps(t *testing.T) {
	none := pod(func(p *corev1.Pod) { p.Labels, p.Annotations = nil, nil })
	empty := pod(func(p *corev1.Pod) { p.Labels, p.Annotations = map[string]string{}, map[string]string{} })
	e := event.UpdateEvent{ObjectOld: none, ObjectNew: empty}
	if (LabelChangedPredicate{}).Update(e) || (AnnotationChangedPredicate{}).Update(e) {
		t.Error("an empty map differs from none")
	}
}

func always(answer bool) Predicate {
	return NewPredicateFuncs(func(client.Object) bool { return answer })
}

// all asks a predicate about one event of each kind.
func all(p Predicate) [4]bool {
	return [4]bool{
		p.Create(event.CreateEvent{Object: pod()}),
		p.Update(event.UpdateEvent{ObjectOld: pod(), ObjectNew: pod()}),
		p.Delete(event.DeleteEvent{Object: pod()}),
		p.Generic(event.GenericEvent{Object: pod()}),
	}
}

func TestCombined(t *testing.T) {
	yes, no := always(true), always(false)
	for name, c := range map[string]struct {
		p    Predicate
		want bool
	}{
		"and":          {And(yes, yes), true},
		"and, one no":  {And(yes, no), false},
		"and of none":  {And[client.Object](), true},
		"or":           {Or(no, yes), true},
		"or, all no":   {Or(no, no), false},
		"or of none":   {Or[client.Object](), false},
		"not":          {Not(no), true},
		"not yes":      {Not(yes), false},
		"nested":       {And(Or(no, yes), Not(no)), true},
		"no functions": {Funcs{}, true},
	} {
		if got := all(c.p); got != [4]bool{c.want, c.want, c.want, c.want} {
			t.Errorf("%s: %v, want all %t", name, got, c.want)
		}
	}
}

// TestShortCut wants And and Or to stop where the answer is known.
func TestShortCut(t *testing.T) {
	asked := 0
	counting := func(answer bool) Predicate {
		return NewPredicateFuncs(func(client.Object) bool { asked++; return answer })
	}
	all(And(counting(false), counting(true)))
	if asked != 4 {
		t.Errorf("And asked %d predicates, want 4", asked)
	}
	asked = 0
	all(Or(counting(true), counting(false)))
	if asked != 4 {
		t.Errorf("Or asked %d predicates, want 4", asked)
	}
}

func TestLabelSelector(t *testing.T) {
	p, err := LabelSelectorPredicate(metav1.LabelSelector{MatchLabels: map[string]string{"l": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if all(p) != [4]bool{true, true, true, true} {
		t.Error("the selector does not match")
	}
	other := pod(func(p *corev1.Pod) { p.Labels = nil })
	if p.Update(event.UpdateEvent{ObjectOld: pod(), ObjectNew: other}) || !p.Update(event.UpdateEvent{ObjectOld: other, ObjectNew: pod()}) {
		t.Error("an update is not judged by the new object")
	}
	if _, err := LabelSelectorPredicate(metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "l", Operator: "Odd"}}}); err == nil {
		t.Error("a selector that is not valid is accepted")
	}
}
