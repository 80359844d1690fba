// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client/scheme"
)

var gv = schema.GroupVersion{Group: "example.com", Version: "v1"}

func TestBuilder(t *testing.T) {
	pods := (&scheme.Builder{GroupVersion: gv}).Register(&corev1.Pod{}, &corev1.PodList{})
	all := (&scheme.Builder{GroupVersion: gv}).Register(&corev1.Service{}).RegisterAll(pods)

	s, err := all.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Pod", "PodList", "Service", "ListOptions", "WatchEvent"} {
		if !s.Recognizes(gv.WithKind(kind)) {
			t.Errorf("%s is not registered", kind)
		}
	}
	if !s.IsVersionRegistered(gv) {
		t.Error("the version is not registered")
	}

	other := runtime.NewScheme()
	if err := pods.AddToScheme(other); err != nil {
		t.Fatal(err)
	}
	if other.Recognizes(gv.WithKind("Service")) {
		t.Error("RegisterAll changed its argument")
	}
}

func TestRegisterAllIsASnapshot(t *testing.T) {
	a := (&scheme.Builder{GroupVersion: gv}).Register(&corev1.Pod{})
	b := (&scheme.Builder{GroupVersion: gv}).RegisterAll(a)
	a.Register(&corev1.Service{})
	s, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if s.Recognizes(gv.WithKind("Service")) {
		t.Error("a later registration reached the copy")
	}
}

// Gadget is a custom kind.
type Gadget struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

// DeepCopyObject is generated in real life.
func (g *Gadget) DeepCopyObject() runtime.Object {
	c := *g
	g.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

func ExampleBuilder() {
	b := &scheme.Builder{GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"}}
	s, err := b.Register(&Gadget{}).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	kinds, _, _ := s.ObjectKinds(&Gadget{})
	fmt.Println(kinds[0])
	// Output: example.com/v1, Kind=Gadget
}
