// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// SpokeConverter converts one version of a kind to and from its hub. It is called from many goroutines at once.
type SpokeConverter[hubObject runtime.Object] interface {
	// GetSpoke returns an object of the version, of which only the type counts.
	GetSpoke() runtime.Object

	// ConvertHubToSpoke writes hub's content into spoke, an empty object of the version.
	ConvertHubToSpoke(ctx context.Context, hub hubObject, spoke runtime.Object) error

	// ConvertSpokeToHub writes spoke's content into hub, an empty object.
	ConvertSpokeToHub(ctx context.Context, spoke runtime.Object, hub hubObject) error
}

// NewSpokeConverter makes a SpokeConverter of two functions. Of spoke only the type counts.
func NewSpokeConverter[hubObject, spokeObject client.Object](
	spoke spokeObject,
	convertHubToSpokeFunc func(ctx context.Context, src hubObject, dst spokeObject) error,
	convertSpokeToHubFunc func(ctx context.Context, src spokeObject, dst hubObject) error,
) SpokeConverter[hubObject] {
	return &spokeFunctions[hubObject, spokeObject]{spoke: spoke, fromHub: convertHubToSpokeFunc, toHub: convertSpokeToHubFunc}
}

type spokeFunctions[H, S client.Object] struct {
	spoke   S
	fromHub func(context.Context, H, S) error
	toHub   func(context.Context, S, H) error
}

func (c *spokeFunctions[H, S]) GetSpoke() runtime.Object { return c.spoke }

func (c *spokeFunctions[H, S]) ConvertHubToSpoke(ctx context.Context, hub H, spoke runtime.Object) error {
	dst, ok := spoke.(S)
	if !ok {
		return fmt.Errorf("cannot convert to a %T, only to a %T", spoke, c.spoke)
	}
	return c.fromHub(ctx, hub, dst)
}

func (c *spokeFunctions[H, S]) ConvertSpokeToHub(ctx context.Context, spoke runtime.Object, hub H) error {
	src, ok := spoke.(S)
	if !ok {
		return fmt.Errorf("cannot convert from a %T, only from a %T", spoke, c.spoke)
	}
	return c.toHub(ctx, src, hub)
}

// NewHubSpokeConverter returns a function that makes a converter of all versions of a kind, for a scheme. It goes through hub,
// of which only the type counts. The function fails unless the versions of the kind in the scheme are hub and the spokes,
// each once.
func NewHubSpokeConverter[hubObject runtime.Object](hub hubObject, spokeConverter ...SpokeConverter[hubObject]) func(scheme *runtime.Scheme) (Converter, error) {
	return func(scheme *runtime.Scheme) (Converter, error) {
		hubKind, err := apiutil.GVKForObject(hub, scheme)
		if err != nil {
			return nil, fmt.Errorf("make a converter: the hub: %w", err)
		}
		c := &hubAndSpokes[hubObject]{scheme: scheme, hub: hubKind, spokes: map[schema.GroupVersionKind]SpokeConverter[hubObject]{}}
		for _, spoke := range spokeConverter {
			kind, err := apiutil.GVKForObject(spoke.GetSpoke(), scheme)
			if err != nil {
				return nil, fmt.Errorf("make a converter of %s: a spoke: %w", hubKind.GroupKind(), err)
			}
			_, twice := c.spokes[kind]
			switch {
			case kind.GroupKind() != hubKind.GroupKind():
				return nil, fmt.Errorf("make a converter of %s: the spoke %s is of another kind", hubKind.GroupKind(), kind)
			case kind == hubKind:
				return nil, fmt.Errorf("make a converter of %s: the spoke %s is the hub", hubKind.GroupKind(), kind.Version)
			case twice:
				return nil, fmt.Errorf("make a converter of %s: there are two spokes %s", hubKind.GroupKind(), kind.Version)
			}
			c.spokes[kind] = spoke
		}
		if err := c.complete(); err != nil {
			return nil, err
		}
		return c, nil
	}
}

// hubAndSpokes converts by a table of spokes.
type hubAndSpokes[H runtime.Object] struct {
	scheme *runtime.Scheme
	hub    schema.GroupVersionKind
	spokes map[schema.GroupVersionKind]SpokeConverter[H]
}

// complete says which versions nobody converts.
func (c *hubAndSpokes[H]) complete() error {
	versions, err := versionsOf(c.scheme, c.hub.GroupKind())
	if err != nil {
		return err
	}
	var missing []string
	for version := range versions {
		if _, ok := c.spokes[version]; !ok && version != c.hub {
			missing = append(missing, version.Version)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("make a converter of %s: no spoke for the versions %v", c.hub.GroupKind(), missing)
	}
	return nil
}

func (c *hubAndSpokes[H]) ConvertObject(ctx context.Context, src, dst runtime.Object) error {
	hub, isHub := src.(H)
	if !isHub {
		var err error
		if hub, err = c.toHub(ctx, src, dst); err != nil {
			return err
		}
	}
	if any(hub) == any(dst) {
		return nil
	}
	spoke, err := c.spokeOf(dst)
	if err != nil {
		return err
	}
	return spoke.ConvertHubToSpoke(ctx, hub, dst)
}

// toHub converts src to the hub: into dst if that is one, else into a new object.
func (c *hubAndSpokes[H]) toHub(ctx context.Context, src, dst runtime.Object) (H, error) {
	hub, last := dst.(H)
	if !last {
		obj, err := c.scheme.New(c.hub)
		if err != nil {
			return hub, err
		}
		hub = obj.(H)
		hub.GetObjectKind().SetGroupVersionKind(c.hub)
	}
	spoke, err := c.spokeOf(src)
	if err != nil {
		return hub, err
	}
	return hub, spoke.ConvertSpokeToHub(ctx, src, hub)
}

func (c *hubAndSpokes[H]) spokeOf(obj runtime.Object) (SpokeConverter[H], error) {
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return nil, err
	}
	spoke, ok := c.spokes[kind]
	if !ok {
		return nil, fmt.Errorf("%s is no version that can be converted", kind)
	}
	return spoke, nil
}
