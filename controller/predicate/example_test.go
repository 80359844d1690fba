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
