// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// defaultSyncPeriod is how often handlers are told of every object again when nothing else is asked for.
const defaultSyncPeriod = 10 * time.Hour

// family says which entries a kind may have: typed and metadata reads share one, unstructured ones have
// their own.
type family uint8

const (
	structured family = iota
	unstructuredFamily
)

func familyOf(form apiutil.Form) family {
	if form == apiutil.Unstructured {
		return unstructuredFamily
	}
	return structured
}

// scope is what one store of a kind holds: settled once, when the store is made.
type scope struct {
	namespace  string // AllNamespaces for all, or for kinds without namespaces
	label      labels.Selector
	field      fields.Selector
	transform  toolscache.TransformFunc
	share      bool // reads share objects unless told otherwise
	bookmarks  bool
	syncPeriod time.Duration
	// others are namespaces that have a store of their own beside an all-namespaces store.
	others []string
}

// settings are the options of a cache, looked up by kind.
type settings struct {
	defaults   Config
	namespaces map[string]Config
	byKind     map[schema.GroupVersionKind]map[family]ByObject
}

// settle checks the options and files them by kind. It changes nothing it is given.
func settle(opts *Options, scheme *runtime.Scheme) (*settings, error) {
	s := &settings{
		defaults: Config{
			LabelSelector: opts.DefaultLabelSelector, FieldSelector: opts.DefaultFieldSelector,
			Transform: opts.DefaultTransform, UnsafeDisableDeepCopy: opts.DefaultUnsafeDisableDeepCopy,
			EnableWatchBookmarks: opts.DefaultEnableWatchBookmarks, SyncPeriod: opts.SyncPeriod,
		},
		namespaces: maps.Clone(opts.DefaultNamespaces),
		byKind:     map[schema.GroupVersionKind]map[family]ByObject{},
	}
	for obj, by := range opts.ByObject {
		gvk, err := apiutil.GVKForObject(obj, scheme)
		if err != nil {
			return nil, fmt.Errorf("cache options by object: %w", err)
		}
		fam := familyOf(apiutil.FormOf(obj))
		if s.byKind[gvk] == nil {
			s.byKind[gvk] = map[family]ByObject{}
		}
		if _, twice := s.byKind[gvk][fam]; twice {
			return nil, fmt.Errorf("cache options by object: %s is given twice", gvk)
		}
		by.Namespaces = maps.Clone(by.Namespaces)
		s.byKind[gvk][fam] = by
	}
	return s, nil
}

// byObject returns the settings given for a kind. Settings given for one form of a kind hold for the other
// forms too, unless these have their own.
func (s *settings) byObject(gvk schema.GroupVersionKind, fam family) ByObject {
	forms := s.byKind[gvk]
	if by, ok := forms[fam]; ok {
		return by
	}
	for _, by := range forms {
		return by
	}
	return ByObject{}
}

// check reports settings that make no sense for the kinds they are given for. Kinds the server does not
// have (yet) are left for later.
func (s *settings) check(mapper meta.RESTMapper) error {
	for gvk, forms := range s.byKind {
		for _, by := range forms {
			if len(by.Namespaces) == 0 {
				continue
			}
			namespaced, err := apiutil.IsGVKNamespaced(gvk, mapper)
			if meta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("cache options by object: %w", err)
			}
			if !namespaced {
				return fmt.Errorf("cache options by object: Namespaces is set for %s, which has no namespaces", gvk)
			}
		}
	}
	return nil
}

// scopes returns what each store of a kind holds, in a stable order.
func (s *settings) scopes(gvk schema.GroupVersionKind, fam family, namespaced bool) ([]scope, error) {
	by := s.byObject(gvk, fam)
	own := Config{
		LabelSelector: by.Label, FieldSelector: by.Field, Transform: by.Transform,
		UnsafeDisableDeepCopy: by.UnsafeDisableDeepCopy, EnableWatchBookmarks: by.EnableWatchBookmarks, SyncPeriod: by.SyncPeriod,
	}
	if !namespaced {
		if len(by.Namespaces) > 0 {
			return nil, fmt.Errorf("cache options by object: Namespaces is set for %s, which has no namespaces", gvk)
		}
		return []scope{newScope(AllNamespaces, own, s.defaults)}, nil
	}
	names := by.Namespaces
	if names == nil {
		names = s.namespaces
	}
	if len(names) == 0 {
		names = map[string]Config{AllNamespaces: {}}
	}
	var out []scope
	for _, ns := range slices.Sorted(maps.Keys(names)) {
		// by.Namespaces and DefaultNamespaces are the same map when the kind has none of its own; then what is
		// set for the kind comes first.
		first := by.Namespaces[ns]
		sc := newScope(ns, first, own, s.namespaces[ns], s.defaults)
		if ns == AllNamespaces {
			sc.exclude(names)
		}
		out = append(out, sc)
	}
	return out, nil
}

// exclude keeps the namespaces that have a store of their own out of the store for all others.
func (sc *scope) exclude(names map[string]Config) {
	terms := []fields.Selector{sc.field}
	for _, ns := range slices.Sorted(maps.Keys(names)) {
		if ns != AllNamespaces {
			sc.others = append(sc.others, ns)
			terms = append(terms, fields.OneTermNotEqualSelector("metadata.namespace", ns))
		}
	}
	if len(sc.others) > 0 {
		sc.field = fields.AndSelectors(terms...)
	}
}

// newScope takes each setting from the first config that has it.
func newScope(ns string, from ...Config) scope {
	sc := scope{namespace: ns, label: labels.Everything(), field: fields.Everything(), bookmarks: true, syncPeriod: defaultSyncPeriod}
	for _, c := range slices.Backward(from) {
		if c.LabelSelector != nil {
			sc.label = c.LabelSelector
		}
		if c.FieldSelector != nil {
			sc.field = c.FieldSelector
		}
		if c.Transform != nil {
			sc.transform = c.Transform
		}
		if c.UnsafeDisableDeepCopy != nil {
			sc.share = *c.UnsafeDisableDeepCopy
		}
		if c.EnableWatchBookmarks != nil {
			sc.bookmarks = *c.EnableWatchBookmarks
		}
		if c.SyncPeriod != nil {
			sc.syncPeriod = *c.SyncPeriod
		}
	}
	return sc
}

// holds reports whether an object in this namespace belongs to the scope.
func (sc *scope) holds(namespace string) bool {
	if sc.namespace != AllNamespaces {
		return namespace == sc.namespace
	}
	return !slices.Contains(sc.others, namespace)
}
