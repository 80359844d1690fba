// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A resource is what a request needs to know of a kind.
type resource struct {
	kind       schema.GroupVersionKind
	prefix     string // the path of the group and version
	name       string // the resource's name in paths, in the plural
	namespaced bool
}

// resources remembers the resource of each kind that a client was used for: the mapper would find it again, more slowly.
// It holds at most one entry for each kind of the server.
type resources struct {
	mapper meta.RESTMapper
	known  sync.Map // schema.GroupVersionKind → *resource
}

// find returns the resource that serves a kind. It may ask the server.
func (r *resources) find(kind schema.GroupVersionKind) (*resource, error) {
	if found, ok := r.known.Load(kind); ok {
		return found.(*resource), nil
	}
	mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource that serves %s: %w", kind, err)
	}
	found := &resource{
		kind:       kind,
		name:       mapping.Resource.Resource,
		namespaced: mapping.Scope.Name() != meta.RESTScopeNameRoot,
		prefix:     "/apis/" + mapping.Resource.Group + "/" + mapping.Resource.Version,
	}
	if mapping.Resource.Group == "" {
		found.prefix = "/api/" + mapping.Resource.Version
	}
	kept, _ := r.known.LoadOrStore(kind, found)
	return kept.(*resource), nil
}

// forget drops what is remembered of a kind, after the server said that it does not serve it there: the kind may have
// gone, or come back under another name or scope.
func (r *resources) forget(kind schema.GroupVersionKind) {
	r.known.Delete(kind)
	if lazy, ok := r.mapper.(interface{ Stale(schema.GroupVersionKind) }); ok {
		lazy.Stale(kind)
	}
}

// path gives the URL path of an object, of a list if name is empty, or of a sub-resource.
func (r *resource) path(namespace, name, subResource string) []string {
	segments := make([]string, 0, 6)
	segments = append(segments, r.prefix)
	if r.namespaced && namespace != "" {
		segments = append(segments, "namespaces", namespace)
	}
	segments = append(segments, r.name)
	if name != "" {
		segments = append(segments, name)
	}
	if subResource != "" {
		segments = append(segments, subResource)
	}
	return segments
}
