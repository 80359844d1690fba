// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client"
)

// AllNamespaces is the key of a Namespaces map that stands for every namespace the map does not name.
const AllNamespaces = metav1.NamespaceAll

// Options tells what a cache holds and how. The zero value caches every kind that is asked for, whole, in all
// namespaces. New reads it and neither changes nor keeps its maps.
//
// A setting is looked for in ByObject[kind].Namespaces[namespace], then ByObject[kind], then
// DefaultNamespaces[namespace], then in the Default fields; the first that is set counts.
type Options struct {
	// HTTPClient sends the requests. Nil means one made from the config.
	HTTPClient *http.Client

	// Scheme tells the kinds of typed objects. Nil means the default scheme.
	Scheme *runtime.Scheme

	// Mapper tells resources and scopes of kinds. Nil means one that asks the server.
	Mapper meta.RESTMapper

	// SyncPeriod is how often handlers are told of every object again, without a request to the server and
	// spread by 10 %. Nil means 10 hours, 0 never.
	SyncPeriod *time.Duration

	// ReaderFailOnMissingInformer makes reads of a kind without an informer fail with ErrResourceNotCached
	// instead of making one.
	ReaderFailOnMissingInformer bool

	// DefaultNamespaces names the namespaces to cache, each with settings of its own; AllNamespaces stands for all
	// others. Empty means all namespaces. Kinds without namespaces are not affected. Reads of another namespace
	// fail.
	DefaultNamespaces map[string]Config

	// DefaultLabelSelector and DefaultFieldSelector restrict what is cached. Use labels.Everything() and
	// fields.Everything() to lift a restriction for some objects.
	DefaultLabelSelector labels.Selector
	DefaultFieldSelector fields.Selector

	// DefaultTransform changes each object before it is stored.
	DefaultTransform toolscache.TransformFunc

	// DefaultWatchErrorHandler is told of every failed list and watch before it is tried again. It must not block.
	// Nil means that they are logged.
	DefaultWatchErrorHandler toolscache.WatchErrorHandlerWithContext

	// DefaultUnsafeDisableDeepCopy makes reads share the cached objects instead of copying them. Whoever changes
	// one then corrupts the cache. Nil means false.
	DefaultUnsafeDisableDeepCopy *bool

	// DefaultEnableWatchBookmarks asks the server for bookmarks. Nil means true.
	DefaultEnableWatchBookmarks *bool

	// ByObject holds settings for kinds, each named by an object of it.
	ByObject map[client.Object]ByObject

	// StopUnusedInformersAfter stops the informer of a kind that has no handler and no index and was not read for so
	// long; a later read makes a new one. 0 means never.
	StopUnusedInformersAfter time.Duration

	// NewInformer makes the informers that read from the server, instead of the cache's own reader. The cache
	// mirrors them.
	NewInformer func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer
}

// ByObject holds settings for one kind. What is not set is taken from Options.
type ByObject struct {
	// Namespaces names the namespaces to cache. Nil means DefaultNamespaces; an empty map means all. It is an error
	// for a kind without namespaces.
	Namespaces map[string]Config

	// Label and Field restrict what is cached.
	Label labels.Selector
	Field fields.Selector

	// Transform changes each object before it is stored.
	Transform toolscache.TransformFunc

	// UnsafeDisableDeepCopy makes reads share the cached objects.
	UnsafeDisableDeepCopy *bool

	// EnableWatchBookmarks asks the server for bookmarks.
	EnableWatchBookmarks *bool

	// SyncPeriod is how often handlers are told of every object again.
	SyncPeriod *time.Duration
}

// Config holds settings for one namespace. What is not set is taken from ByObject or Options.
type Config struct {
	// LabelSelector and FieldSelector restrict what is cached.
	LabelSelector labels.Selector
	FieldSelector fields.Selector

	// Transform changes each object before it is stored.
	Transform toolscache.TransformFunc

	// UnsafeDisableDeepCopy makes reads share the cached objects.
	UnsafeDisableDeepCopy *bool

	// EnableWatchBookmarks asks the server for bookmarks.
	EnableWatchBookmarks *bool

	// SyncPeriod is how often handlers are told of every object again.
	SyncPeriod *time.Duration
}

// TransformStripManagedFields returns a transform that drops managedFields, which few programs read and which
// are a good part of an object's size.
func TransformStripManagedFields() toolscache.TransformFunc {
	return func(in any) (any, error) {
		// Objects without metadata are none of this function's business.
		if m, err := meta.Accessor(in); err == nil && m.GetManagedFields() != nil {
			m.SetManagedFields(nil)
		}
		return in, nil
	}
}
