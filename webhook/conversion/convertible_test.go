// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/wherry-dev/wherry/webhook/conversion"
)

func TestIsConvertible(t *testing.T) {
	tests := map[string]struct {
		versions map[string]runtime.Object
		obj      runtime.Object
		want     bool
		problem  string
	}{
		"hub and spokes":        {map[string]runtime.Object{"v1": &GadgetV1{}, "v2": &GadgetV2{}, "v3": &GadgetV3{}}, &GadgetV1{}, true, ""},
		"hub alone":             {map[string]runtime.Object{"v2": &GadgetV2{}}, &GadgetV2{}, true, ""},
		"neither":               {map[string]runtime.Object{"v1": &Plain{}}, &Plain{}, false, ""},
		"internal is no matter": {map[string]runtime.Object{"v1": &Plain{}, runtime.APIVersionInternal: &GadgetV2{}}, &Plain{}, false, ""},
		"spoke without hub":     {map[string]runtime.Object{"v1": &GadgetV1{}}, &GadgetV1{}, false, "hubs are []"},
		"one is neither":        {map[string]runtime.Object{"v1": &Plain{}, "v2": &GadgetV2{}, "v3": &GadgetV3{}}, &GadgetV2{}, false, "[v1] are neither"},
		"unknown":               {nil, &Plain{}, false, "no kind"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := conversion.IsConvertible(schemeOf(test.versions), test.obj)
			if got != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v, %v", got, err)
			}
			var partial conversion.PartialImplementationError
			if test.problem != "" && name != "unknown" && !errors.As(err, &partial) {
				t.Errorf("%T is no PartialImplementationError", err)
			}
		})
	}
}

// v1 and v3 of the kind convert by functions outside their types.
func v1Spoke() conversion.SpokeConverter[*GadgetV2] {
	return conversion.NewSpokeConverter(&GadgetV1{},
		func(_ context.Context, hub *GadgetV2, spoke *GadgetV1) error { return spoke.ConvertFrom(hub) },
		func(_ context.Context, spoke *GadgetV1, hub *GadgetV2) error { return spoke.ConvertTo(hub) })
}

func v3Spoke() conversion.SpokeConverter[*GadgetV2] {
	return conversion.NewSpokeConverter(&GadgetV3{},
		func(_ context.Context, hub *GadgetV2, spoke *GadgetV3) error { return spoke.ConvertFrom(hub) },
		func(_ context.Context, spoke *GadgetV3, hub *GadgetV2) error { return spoke.ConvertTo(hub) })
}

func TestHubSpokeConverter(t *testing.T) {
	c, err := conversion.NewHubSpokeConverter(&GadgetV2{}, v1Spoke(), v3Spoke())(gadgets())
	if err != nil {
		t.Fatal(err)
	}
	v1, v2, v3 := &GadgetV1{Seconds: 2}, &GadgetV2{}, &GadgetV3{}
	if err := c.ConvertObject(t.Context(), v1, v2); err != nil || v2.Millis != 2000 {
		t.Errorf("to the hub: %d, %v", v2.Millis, err)
	}
	if err := c.ConvertObject(t.Context(), v2, v3); err != nil || v3.Micros != 2000000 {
		t.Errorf("from the hub: %d, %v", v3.Micros, err)
	}
	again := &GadgetV3{}
	if err := c.ConvertObject(t.Context(), v1, again); err != nil || again.Micros != 2000000 {
		t.Errorf("over the hub: %d, %v", again.Micros, err)
	}
	if err := c.ConvertObject(t.Context(), &GadgetV1{Seconds: -1}, again); err == nil || !strings.Contains(err.Error(), "negative") {
		t.Errorf("a failing spoke: %v", err)
	}
	if err := c.ConvertObject(t.Context(), &Plain{}, v2); err == nil {
		t.Error("a type that is no version was converted")
	}
	if err := c.ConvertObject(t.Context(), v2, &Plain{}); err == nil {
		t.Error("converted to a type that is no version")
	}
	if err := v1Spoke().ConvertHubToSpoke(t.Context(), v2, v3); err == nil {
		t.Error("a spoke of v1 took a v3")
	}
	if err := v1Spoke().ConvertSpokeToHub(t.Context(), v3, v2); err == nil {
		t.Error("a spoke of v1 took a v3")
	}
}

func TestHubSpokeConverterMistakes(t *testing.T) {
	twoKinds := gadgets()
	twoKinds.AddKnownTypeWithName(gadgetKind.WithVersion("v1").GroupVersion().WithKind("Plain"), &Plain{})
	plain := conversion.NewSpokeConverter[*GadgetV2](&Plain{}, nil, nil)
	hubAgain := conversion.NewSpokeConverter[*GadgetV2](&GadgetV2{}, nil, nil)
	tests := map[string]struct {
		scheme *runtime.Scheme
		spokes []conversion.SpokeConverter[*GadgetV2]
		want   string
	}{
		"hub unknown":   {runtime.NewScheme(), nil, "the hub"},
		"missing":       {gadgets(), []conversion.SpokeConverter[*GadgetV2]{v1Spoke()}, "no spoke for the versions [v3]"},
		"twice":         {gadgets(), []conversion.SpokeConverter[*GadgetV2]{v1Spoke(), v1Spoke(), v3Spoke()}, "two spokes v1"},
		"hub as spoke":  {gadgets(), []conversion.SpokeConverter[*GadgetV2]{hubAgain}, "is the hub"},
		"another kind":  {twoKinds, []conversion.SpokeConverter[*GadgetV2]{plain}, "another kind"},
		"spoke unknown": {schemeOf(map[string]runtime.Object{"v2": &GadgetV2{}}), []conversion.SpokeConverter[*GadgetV2]{v1Spoke()}, "a spoke"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := conversion.NewHubSpokeConverter(&GadgetV2{}, test.spokes...)(test.scheme)
			if err == nil || c != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v", c, err)
			}
		})
	}
}

// What the Go types can be wrong in is told with the type's name.
func TestConvertByTypesMistakes(t *testing.T) {
	tests := map[string]struct {
		versions      map[string]runtime.Object
		from, desired string
		want          string
	}{
		"source is neither":             {map[string]runtime.Object{"v1": &Plain{}, "v2": &GadgetV2{}}, "v1", "v2", "neither"},
		"hub to neither":                {map[string]runtime.Object{"v1": &Plain{}, "v2": &GadgetV2{}}, "v2", "v1", "no spoke"},
		"spoke to neither":              {map[string]runtime.Object{"v1": &GadgetV1{}, "v4": &Plain{}}, "v1", "v4", "neither"},
		"spoke to spoke, without a hub": {map[string]runtime.Object{"v1": &GadgetV1{}, "v3": &GadgetV3{}}, "v1", "v3", "no hub"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := conversion.NewWebhookHandler(schemeOf(test.versions), nil)
			r := convert(t, h, review("v1", "example.com/"+test.desired, one(test.from, "seconds", 1)))
			if !strings.Contains(r.Response.Result.Message, test.want) {
				t.Errorf("got %q", r.Response.Result.Message)
			}
		})
	}
}

func TestDecoder(t *testing.T) {
	d := conversion.NewDecoder(gadgets())
	obj, kind, err := d.Decode([]byte(one("v3", "micros", 9007199254740993)))
	if g, ok := obj.(*GadgetV3); err != nil || !ok || g.Micros != 9007199254740993 || kind.Version != "v3" {
		t.Errorf("got %+v %v %v", obj, kind, err)
	}
	if _, kind, err := d.Decode([]byte(`{"apiVersion":"x/v1","kind":"Y"}`)); !runtime.IsNotRegisteredError(err) || kind.Kind != "Y" {
		t.Errorf("got %v %v", kind, err)
	}
	into := &GadgetV1{}
	if err := d.DecodeInto([]byte(one("v1", "seconds", 4)), into); err != nil || into.Seconds != 4 {
		t.Errorf("got %+v %v", into, err)
	}
	for _, bad := range []string{one("v3", "micros", 1), "{", "{}", `{"apiVersion":"example.com/v1","kind":"Gadget","seconds":"x"}`} {
		if err := d.DecodeInto([]byte(bad), &GadgetV1{}); err == nil {
			t.Errorf("%s is no GadgetV1", bad)
		}
	}
}
