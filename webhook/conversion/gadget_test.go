// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubs "github.com/wherry-dev/wherry/client/conversion"
)

var gadgetKind = schema.GroupKind{Group: "example.com", Kind: "Gadget"}

// gadget is what all versions have.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// GadgetV1 counts seconds and is a spoke.
type GadgetV1 struct {
	gadget
	Seconds int64 `json:"seconds"`
}

// GadgetV2 counts milliseconds and is the hub.
type GadgetV2 struct {
	gadget
	Millis int64 `json:"millis"`
}

// GadgetV3 counts microseconds and is a spoke.
type GadgetV3 struct {
	gadget
	Micros int64 `json:"micros"`
}

func (g *GadgetV1) DeepCopyObject() runtime.Object { c := *g; return &c }
func (g *GadgetV2) DeepCopyObject() runtime.Object { c := *g; return &c }
func (g *GadgetV3) DeepCopyObject() runtime.Object { c := *g; return &c }

// Hub marks the version.
func (*GadgetV2) Hub() {}

func (g *GadgetV1) ConvertTo(dst hubs.Hub) error {
	switch g.Seconds {
	case -1:
		return errors.New("negative time")
	case -2:
		panic("secret of a gadget")
	}
	hub := dst.(*GadgetV2)
	hub.ObjectMeta, hub.Millis = g.ObjectMeta, g.Seconds*1000
	return nil
}

func (g *GadgetV1) ConvertFrom(src hubs.Hub) error {
	hub := src.(*GadgetV2)
	g.ObjectMeta, g.Seconds = hub.ObjectMeta, hub.Millis/1000
	return nil
}

func (g *GadgetV3) ConvertTo(dst hubs.Hub) error {
	hub := dst.(*GadgetV2)
	// The careless way, which takes the apiVersion along.
	hub.gadget, hub.Millis = g.gadget, g.Micros/1000
	return nil
}

func (g *GadgetV3) ConvertFrom(src hubs.Hub) error {
	hub := src.(*GadgetV2)
	g.gadget, g.Micros = hub.gadget, hub.Millis*1000
	return nil
}

// Plain is no version that converts.
type Plain struct{ gadget }

func (p *Plain) DeepCopyObject() runtime.Object { c := *p; return &c }

// schemeOf has the given versions of Gadget.
func schemeOf(versions map[string]runtime.Object) *runtime.Scheme {
	s := runtime.NewScheme()
	for version, obj := range versions {
		s.AddKnownTypeWithName(gadgetKind.WithVersion(version), obj)
	}
	return s
}

func gadgets() *runtime.Scheme {
	return schemeOf(map[string]runtime.Object{"v1": &GadgetV1{}, "v2": &GadgetV2{}, "v3": &GadgetV3{}})
}
