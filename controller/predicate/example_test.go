// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package predicate_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/predicate"
)

func ExampleAnd() {
	inDefault := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == "default" })
	p := predicate.And(inDefault, predicate.GenerationChangedPredicate{})

	before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Generation: 1}}
	after := before.DeepCopy()
	fmt.Println("status changed:", p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
	after.Generation = 2
	fmt.Println("spec changed:", p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
	// Output:
	// status changed: false
	// spec changed: true
}

func podOf(namespace string, labels map[string]string) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels}}
}

// One question for every kind of event; an update is judged by the new object.
func ExampleNewPredicateFuncs() {
	inDefault := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == "default" })
	fmt.Println(inDefault.Create(event.CreateEvent{Object: podOf("default", nil)}))
	fmt.Println(inDefault.Update(event.UpdateEvent{ObjectOld: podOf("default", nil), ObjectNew: podOf("other", nil)}))
	// Output:
	// true
	// false
}

func ExampleNewTypedPredicateFuncs() {
	assigned := predicate.NewTypedPredicateFuncs(func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })
	fmt.Println(assigned.Create(event.TypedCreateEvent[*corev1.Pod]{Object: &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}}))
	// Output: true
}

func ExampleOr() {
	p := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
	fmt.Println(p.Update(event.UpdateEvent{ObjectOld: podOf("default", nil), ObjectNew: podOf("default", map[string]string{"app": "web"})}))
	// Output: true
}

func ExampleNot() {
	inDefault := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetNamespace() == "default" })
	fmt.Println(predicate.Not[client.Object](inDefault).Create(event.CreateEvent{Object: podOf("default", nil)}))
	// Output: false
}

func ExampleLabelSelectorPredicate() {
	p, err := predicate.LabelSelectorPredicate(metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})
	fmt.Println(p.Create(event.CreateEvent{Object: podOf("default", map[string]string{"app": "web"})}), err)
	// Output: true <nil>
}
