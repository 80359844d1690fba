// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"
)

// A resource is what a request needs to know of a kind.
type resource struct {
	kind       schema.GroupVersionKind
	prefix     string // the path of the group and version
	name       string // the resource's name in paths, in the plural
	namespaced bool
	limiter    flowcontrol.RateLimiter // nil if there is no limit
}

// resources remembers the resource of each kind that a client was used for: the mapper would find it again, more slowly.
// It holds at most one entry for each kind of the server.
type resources struct {
	mapper meta.RESTMapper
	// newLimiter makes the limiter of a resource; nil means no limit.
	newLimiter func() flowcontrol.RateLimiter
	known      sync.Map // schema.GroupVersionKind → *resource
}

// contextMapper is a RESTMapper whose look-up can be cut short. The lazy mapper is one.
type contextMapper interface {
	RESTMappingWithContext(ctx context.Context, kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

func (r *resources) mapping(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if m, ok := r.mapper.(contextMapper); ok {
		return m.RESTMappingWithContext(ctx, kind.GroupKind(), kind.Version)
	}
	return r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

// find returns the resource that serves a kind. It may ask the server.
func (r *resources) find(ctx context.Context, kind schema.GroupVersionKind) (*resource, error) {
	if found, ok := r.known.Load(kind); ok {
		return found.(*resource), nil
	}
	mapping, err := r.mapping(ctx, kind)
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
	if r.newLimiter != nil {
		found.limiter = r.newLimiter()
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

// path gives the URL path of a call.
func (r *resource) path(c *call) string {
	var b strings.Builder
	b.Grow(len(r.prefix) + len("/namespaces/") + len(c.namespace) + len(r.name) + len(c.name) + len(c.subResource) + 3)
	b.WriteString(r.prefix)
	if r.namespaced && c.namespace != "" {
		b.WriteString("/namespaces/")
		b.WriteString(c.namespace)
	}
	b.WriteByte('/')
	b.WriteString(r.name)
	if c.name != "" && (c.verb != VerbCreate || c.subResource != "") { // the name of a new object is in its body
		b.WriteByte('/')
		b.WriteString(c.name)
	}
	if c.subResource != "" {
		b.WriteByte('/')
		b.WriteString(c.subResource)
	}
	return b.String()
}
