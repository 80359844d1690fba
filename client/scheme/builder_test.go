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

// Each file of an API package registers its types with the one builder of the package, often in one chain.
func ExampleBuilder_Register() {
	b := &scheme.Builder{GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"}}
	s, err := b.Register(&Gadget{}).Register(&corev1.Pod{}, &corev1.PodList{}).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, kind := range []string{"Gadget", "PodList", "Service"} {
		fmt.Println(kind, s.Recognizes(b.GroupVersion.WithKind(kind)))
	}
	// Output:
	// Gadget true
	// PodList true
	// Service false
}

// One scheme for several group versions: each builder's types keep theirs.
func ExampleBuilder_RegisterAll() {
	v1 := &scheme.Builder{GroupVersion: schema.GroupVersion{Group: "example.com", Version: "v1"}}
	v1.Register(&Gadget{})
	all := &scheme.Builder{GroupVersion: schema.GroupVersion{Group: "other.example.com", Version: "v2"}}
	s, err := all.Register(&corev1.Pod{}).RegisterAll(v1).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Recognizes(v1.GroupVersion.WithKind("Gadget")), s.Recognizes(all.GroupVersion.WithKind("Gadget")))
	// Output: true false
}
