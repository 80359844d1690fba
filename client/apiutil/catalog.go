// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A catalog is what one look at the server told. It does not change once it is made.
type catalog struct {
	// began is when the look began.
	began time.Time
	// byKind answers the question that every request asks: a whole kind, one version.
	byKind map[schema.GroupVersionKind]*meta.RESTMapping
	// all answers the others: parts of a resource or kind, in the server's order of preference.
	all meta.RESTMapper
	// failures says which versions the look could not tell about.
	failures ErrResourceDiscoveryFailed
	// doubted are kinds that the server has refused since: look-ups of them miss. It is the one part that changes.
	doubted sync.Map // schema.GroupVersionKind → true
}

func newCatalog(groups []group, began time.Time) *catalog {
	c := &catalog{
		began:    began,
		byKind:   map[schema.GroupVersionKind]*meta.RESTMapping{},
		failures: ErrResourceDiscoveryFailed{},
	}
	var union meta.MultiRESTMapper
	var resources []schema.GroupVersionResource
	var kinds []schema.GroupVersionKind
	for _, g := range groups {
		for _, v := range g.versions {
			gv := schema.GroupVersion{Group: g.name, Version: v.name}
			if v.err != nil {
				c.failures[gv] = v.err
			}
			union = append(union, c.addVersion(gv, v.resources))
			resources = append(resources, gv.WithResource(meta.AnyResource))
			kinds = append(kinds, gv.WithKind(meta.AnyKind))
		}
	}
	// The server lists the preferred version of each group first; within that, groups keep the server's order.
	for _, g := range groups {
		resources = append(resources, schema.GroupVersionResource{Group: g.name, Version: meta.AnyVersion, Resource: meta.AnyResource})
		kinds = append(kinds, schema.GroupVersionKind{Group: g.name, Version: meta.AnyVersion, Kind: meta.AnyKind})
	}
	c.all = meta.PriorityRESTMapper{Delegate: union, ResourcePriority: resources, KindPriority: kinds}
	return c
}

func (c *catalog) addVersion(gv schema.GroupVersion, resources []resource) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gv})
	for _, r := range resources {
		scope := meta.RESTScopeRoot
		if r.namespaced {
			scope = meta.RESTScopeNamespace
		}
		singular := r.singular
		if singular == "" {
			singular = strings.ToLower(r.kind)
		}
		kind := gv.WithKind(r.kind)
		mapper.AddSpecific(kind, gv.WithResource(r.name), gv.WithResource(singular), scope)
		mapper.Add(ListKind(kind), scope)
		if _, taken := c.byKind[kind]; !taken {
			c.byKind[kind] = &meta.RESTMapping{Resource: gv.WithResource(r.name), GroupVersionKind: kind, Scope: scope}
		}
	}
	return mapper
}

// mapping finds the resource of a kind, in the first of the versions that has it or, with none given, in the preferred one.
func (c *catalog) mapping(kind schema.GroupKind, versions []string) (*meta.RESTMapping, error) {
	if len(versions) > 0 {
		if _, doubted := c.doubted.Load(kind.WithVersion(versions[0])); doubted {
			return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
		}
		if found, ok := c.byKind[kind.WithVersion(versions[0])]; ok {
			copied := *found // callers own what they get
			return &copied, nil
		}
	}
	return c.all.RESTMapping(kind, versions...)
}

// broken returns the failures that may be why a look-up in a group missed: the group's own, or all of them if
// groupName is nil. It returns nil if there are none.
func (c *catalog) broken(groupName *string) error {
	failed := ErrResourceDiscoveryFailed{}
	for gv, err := range c.failures {
		if groupName == nil || gv.Group == *groupName {
			failed[gv] = err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return &failed
}
