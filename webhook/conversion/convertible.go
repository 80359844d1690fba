// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/conversion"
)

// PartialImplementationError says that some of a kind's versions can be converted and others cannot: there is a hub and a
// version without functions, several hubs, or functions and no hub.
type PartialImplementationError struct {
	kind                  schema.GroupKind
	hubs, spokes, neither []string // versions
}

func (e PartialImplementationError) Error() string {
	return fmt.Sprintf("%s can be converted in part only: its hubs are %s, its spokes %s, and %s are neither; one must be the hub and all others spokes",
		e.kind, listed(e.hubs), listed(e.spokes), listed(e.neither))
}

func listed(versions []string) string { return "[" + strings.Join(versions, " ") + "]" }

// IsConvertible says whether the versions of obj's kind in scheme convert into each other by their Go types: exactly one is a
// conversion.Hub and all others are conversion.Convertible. If none is either, the answer is no; if only some are, the error
// is a PartialImplementationError. A kind with one version is not convertible, unless that is a hub.
func IsConvertible(scheme *runtime.Scheme, obj runtime.Object) (bool, error) {
	kind, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return false, err
	}
	versions, err := versionsOf(scheme, kind.GroupKind())
	if err != nil {
		return false, err
	}
	found := PartialImplementationError{kind: kind.GroupKind()}
	for kind, obj := range versions {
		switch obj.(type) {
		case conversion.Hub:
			found.hubs = append(found.hubs, kind.Version)
		case conversion.Convertible:
			found.spokes = append(found.spokes, kind.Version)
		default:
			found.neither = append(found.neither, kind.Version)
		}
	}
	for _, names := range [][]string{found.hubs, found.spokes, found.neither} {
		slices.Sort(names)
	}
	switch {
	case len(found.hubs) == 1 && len(found.neither) == 0:
		return true, nil
	case len(found.hubs) == 0 && len(found.spokes) == 0:
		return false, nil
	default:
		return false, found
	}
}

// versionsOf makes an empty object of each version of a kind that scheme knows.
func versionsOf(scheme *runtime.Scheme, kind schema.GroupKind) (map[schema.GroupVersionKind]runtime.Object, error) {
	versions := map[schema.GroupVersionKind]runtime.Object{}
	for _, gv := range scheme.VersionsForGroupKind(kind) {
		if gv.Version == runtime.APIVersionInternal {
			continue
		}
		version := gv.WithKind(kind.Kind)
		obj, err := scheme.New(version)
		if err != nil {
			return nil, err
		}
		versions[version] = obj
	}
	return versions, nil
}

// byTypes converts objects whose Go types are hub and spokes.
type byTypes struct{ scheme *runtime.Scheme }

func (c byTypes) ConvertObject(_ context.Context, src, dst runtime.Object) error {
	if src, ok := src.(conversion.Hub); ok {
		if dst, ok := dst.(conversion.Convertible); ok {
			return dst.ConvertFrom(src)
		}
		return fmt.Errorf("%T is no spoke: it does not implement conversion.Convertible", dst)
	}
	from, ok := src.(conversion.Convertible)
	if !ok {
		return fmt.Errorf("%T is neither hub nor spoke: it implements neither conversion.Hub nor conversion.Convertible", src)
	}
	if hub, ok := dst.(conversion.Hub); ok {
		return from.ConvertTo(hub)
	}
	to, ok := dst.(conversion.Convertible)
	if !ok {
		return fmt.Errorf("%T is neither hub nor spoke: it implements neither conversion.Hub nor conversion.Convertible", dst)
	}
	hub, err := c.hubOf(src)
	if err != nil {
		return err
	}
	if err := from.ConvertTo(hub); err != nil {
		return fmt.Errorf("to the hub %T: %w", hub, err)
	}
	if err := to.ConvertFrom(hub); err != nil {
		return fmt.Errorf("from the hub %T: %w", hub, err)
	}
	return nil
}

// hubOf makes an empty hub of obj's kind.
func (c byTypes) hubOf(obj runtime.Object) (conversion.Hub, error) {
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return nil, err
	}
	versions, err := versionsOf(c.scheme, kind.GroupKind())
	if err != nil {
		return nil, err
	}
	var found conversion.Hub
	for version, obj := range versions {
		hub, ok := obj.(conversion.Hub)
		if !ok {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%s has more than one hub", kind.GroupKind())
		}
		hub.GetObjectKind().SetGroupVersionKind(version)
		found = hub
	}
	if found == nil {
		return nil, fmt.Errorf("%s has no hub: none of its versions implements conversion.Hub", kind.GroupKind())
	}
	return found, nil
}
