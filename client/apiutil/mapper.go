// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// refreshInterval is the least time between two looks at the server's discovery documents. A look-up that misses waits
// for it, so that a kind is found as soon as the server has it and a missing kind costs at most one look per interval,
// whoever asks and how often.
const refreshInterval = time.Second

// NewDynamicRESTMapper makes a RESTMapper that learns from the server itself. Making it sends nothing.
//
// The first look-up reads the two aggregated discovery documents, /api and /apis; a server that is too old for them is
// asked group by group. A look-up that finds nothing reads them again, at most once a second for all callers together,
// and waits for that: at most a second plus the requests. So a kind can be used right after its CRD was installed, a
// version that appeared or disappeared is noticed, and a kind that does not exist cannot flood the server. Kinds that are
// known cost no request; a kind which disappeared is known until a look-up of anything else misses, or a client that uses
// the mapper is told so by the server.
//
// Groups whose extension server is down do not disturb others. A look-up that misses because of them returns an error
// that wraps ErrResourceDiscoveryFailed instead of one for which meta.IsNoMatchError is true.
//
// config is copied. A nil httpClient is an error. All methods may be called at once from many goroutines.
func NewDynamicRESTMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	if config == nil {
		return nil, errors.New("make a RESTMapper: config must not be nil")
	}
	if httpClient == nil {
		return nil, errors.New("make a RESTMapper: httpClient must not be nil, use rest.HTTPClientFor(config)")
	}
	d, err := newDiscovery(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make a RESTMapper: %w", err)
	}
	return &lazyMapper{discovery: d, turn: make(chan struct{}, 1)}, nil
}

// lazyMapper holds what it last learned of the server as one catalog and replaces it as a whole.
type lazyMapper struct {
	discovery *discovery

	// turn holds one token; who has it asks the server, one at a time.
	turn     chan struct{}
	lastLook time.Time // guarded by turn

	mu      sync.RWMutex
	current *catalog // nil until the first look; guarded by mu
}

var _ meta.ResettableRESTMapper = (*lazyMapper)(nil)

func (m *lazyMapper) catalog() *catalog {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.current
}

func (m *lazyMapper) setCatalog(c *catalog) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = c
}

// newer returns a catalog that is good enough: one in which ok finds what is looked for, whoever fetched it, or else one
// from a look that began after newer was called. One that began before may lack a kind that was installed in between.
func (m *lazyMapper) newer(ctx context.Context, ok func(*catalog) bool) (*catalog, error) {
	asked := time.Now()
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c := m.catalog(); c != nil && (c.began.After(asked) || ok(c)) {
		return c, nil
	}
	if wait := time.Until(m.lastLook.Add(refreshInterval)); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	m.lastLook = time.Now()
	groups, err := m.discovery.groups(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, fmt.Errorf("%w: %w", cause, err)
	}
	if err != nil {
		return nil, err
	}
	c := newCatalog(groups, m.lastLook)
	m.setCatalog(c)
	return c, nil
}

// lookUp runs find on what is known and, if that misses, once more on a newer catalog. groupName is the one group in which
// a match can be, nil if it can be in any.
func lookUp[T any](ctx context.Context, m *lazyMapper, groupName *string, find func(*catalog) (T, error)) (T, error) {
	if known := m.catalog(); known != nil {
		if found, err := find(known); !meta.IsNoMatchError(err) {
			return found, err
		}
	}
	fresh, err := m.newer(ctx, func(c *catalog) bool {
		_, err := find(c)
		return !meta.IsNoMatchError(err)
	})
	if err != nil {
		var none T
		return none, err
	}
	found, err := find(fresh)
	if meta.IsNoMatchError(err) {
		if broken := fresh.broken(groupName); broken != nil {
			return found, fmt.Errorf("%w; %w", noMatchText(err), broken)
		}
	}
	return found, err
}

// noMatchText keeps the words of a NoMatch error but not its type: with a broken group nobody knows whether there is a
// match, and callers take NoMatch as proof that there is none.
func noMatchText(err error) error { return errors.New(err.Error()) }

// unbounded is the context of look-ups through the RESTMapper interface, which has none. They end all the same: newer
// waits for refreshInterval at most, and discovery has a time limit of its own.
var unbounded = context.Background()

// groupOf reads a partial resource: there an empty group means any group.
func groupOf(r schema.GroupVersionResource) *string {
	if r.Group == "" {
		return nil
	}
	return &r.Group
}

// Reset forgets everything, so that the next look-up asks the server. It still waits for its time.
func (m *lazyMapper) Reset() { m.setCatalog(nil) }

func (m *lazyMapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return lookUp(unbounded, m, groupOf(r), func(c *catalog) (schema.GroupVersionKind, error) { return c.all.KindFor(r) })
}

func (m *lazyMapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return lookUp(unbounded, m, groupOf(r), func(c *catalog) ([]schema.GroupVersionKind, error) { return c.all.KindsFor(r) })
}

func (m *lazyMapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return lookUp(unbounded, m, groupOf(r), func(c *catalog) (schema.GroupVersionResource, error) { return c.all.ResourceFor(r) })
}

func (m *lazyMapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return lookUp(unbounded, m, groupOf(r), func(c *catalog) ([]schema.GroupVersionResource, error) { return c.all.ResourcesFor(r) })
}

func (m *lazyMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.RESTMappingWithContext(unbounded, kind, versions...)
}

// RESTMappingWithContext is RESTMapping for callers with a context: it ends when ctx is done.
func (m *lazyMapper) RESTMappingWithContext(ctx context.Context, kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return lookUp(ctx, m, &kind.Group, func(c *catalog) (*meta.RESTMapping, error) { return c.mapping(kind, versions) })
}

// Stale tells the mapper that the server does not serve a kind where the mapper says it does: the next look-up of the kind
// asks the server again. It makes no request itself.
func (m *lazyMapper) Stale(kind schema.GroupVersionKind) {
	if c := m.catalog(); c != nil {
		c.doubted.Store(kind, true)
	}
}

func (m *lazyMapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return lookUp(unbounded, m, &kind.Group, func(c *catalog) ([]*meta.RESTMapping, error) { return c.all.RESTMappings(kind, versions...) })
}

func (m *lazyMapper) ResourceSingularizer(name string) (string, error) {
	return lookUp(unbounded, m, nil, func(c *catalog) (string, error) { return c.all.ResourceSingularizer(name) })
}
