// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherry-dev/wherry/client/conversion"
)

// GadgetV2 is the hub: it counts milliseconds.
type GadgetV2 struct {
	metav1.TypeMeta
	Millis int64
}

// Hub marks the version.
func (*GadgetV2) Hub() {}

// DeepCopyObject is generated in real life.
func (g *GadgetV2) DeepCopyObject() runtime.Object { c := *g; return &c }

// GadgetV1 counted seconds.
type GadgetV1 struct {
	metav1.TypeMeta
	Seconds int64
}

// DeepCopyObject is generated in real life.
func (g *GadgetV1) DeepCopyObject() runtime.Object { c := *g; return &c }

// ConvertTo makes the hub version.
func (g *GadgetV1) ConvertTo(dst conversion.Hub) error {
	dst.(*GadgetV2).Millis = g.Seconds * 1000
	return nil
}

// ConvertFrom reads the hub version.
func (g *GadgetV1) ConvertFrom(src conversion.Hub) error {
	g.Seconds = src.(*GadgetV2).Millis / 1000
	return nil
}

func ExampleConvertible() {
	var spoke conversion.Convertible = &GadgetV1{Seconds: 3}
	hub := &GadgetV2{}
	if err := spoke.ConvertTo(hub); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(hub.Millis)
	// Output: 3000
}

func TestRoundTrip(t *testing.T) {
	in, out, hub := &GadgetV1{Seconds: 7}, &GadgetV1{}, &GadgetV2{}
	if err := in.ConvertTo(hub); err != nil {
		t.Fatal(err)
	}
	if err := out.ConvertFrom(hub); err != nil {
		t.Fatal(err)
	}
	if out.Seconds != in.Seconds {
		t.Errorf("got %d, want %d", out.Seconds, in.Seconds)
	}
}
