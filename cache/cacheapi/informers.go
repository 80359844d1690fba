// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cacheapi

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client"
)

// Object is any API object.
type Object = client.Object

// IndexerFunc gives the values under which an object is found in an index.
type IndexerFunc = client.IndexerFunc

// FieldIndexer adds indexes to a cache.
type FieldIndexer = client.FieldIndexer

// Informers gives access to the informers of a cache, one for each kind, and makes them on demand.
// All methods may be called at once from many goroutines.
type Informers interface {
	// GetInformer returns the informer of obj's kind, made and started if need be. Only obj's type and kind are
	// used. Unless told otherwise by BlockUntilSynced(false) it waits, on a started cache, until the informer is
	// filled; it stops waiting when ctx is done or when the server refuses the kind, and then gives the server's
	// reason.
	GetInformer(ctx context.Context, obj Object, opts ...InformerGetOption) (Informer, error)

	// GetInformerForKind is GetInformer for a kind that the cache's scheme knows.
	GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...InformerGetOption) (Informer, error)

	// RemoveInformer stops the informer of obj's kind and forgets it with its handlers and indexes. A kind
	// without an informer is no error. A later read makes a new one.
	RemoveInformer(ctx context.Context, obj Object) error

	// Start fills all informers and keeps them up to date. It blocks until ctx is done and everything it started
	// has ended. It may be called once.
	Start(ctx context.Context) error

	// WaitForCacheSync waits until the cache is started and every informer it has by then is filled. It returns
	// false if ctx was done first.
	WaitForCacheSync(ctx context.Context) bool

	FieldIndexer
}

// Informer tells handlers what happens to the objects of one kind. Each handler is told in order; handlers
// never wait for one another. Handlers must not change the objects they are given.
type Informer interface {
	// AddEventHandler adds a handler. It is told of every object that is there, as additions, and of every change
	// from then on. Changes of one object that happen while the handler is busy are joined into one. The
	// registration tells when the handler has seen what was there first, and removes it.
	AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error)

	// AddEventHandlerWithResyncPeriod is AddEventHandler with a period after which the handler is told of every
	// object again, as an update without a change; 0 means never.
	AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, resyncPeriod time.Duration) (toolscache.ResourceEventHandlerRegistration, error)

	// AddEventHandlerWithOptions is AddEventHandler with options.
	AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error)

	// RemoveEventHandler removes a handler. It does not wait for a call of the handler that is under way; no
	// other follows. Removing twice is no error.
	RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error

	// AddIndexers adds indexes under names of their own, all or none.
	AddIndexers(indexers toolscache.Indexers) error

	// HasSynced reports whether the informer has been filled once.
	HasSynced() bool

	// HasSyncedChecker tells, without polling, when the informer has been filled once.
	HasSyncedChecker() toolscache.DoneChecker

	// IsStopped reports whether the informer has ended: handlers can no longer be added.
	IsStopped() bool
}

// InlineHandler is a handler that never blocks and calls no function of a user. It is called in the same step
// that changes the store, without a goroutine or a queue between. A handler that says so and blocks holds up
// its whole kind.
type InlineHandler interface {
	toolscache.ResourceEventHandler
	// Inline reports whether the handler keeps that promise.
	Inline() bool
}

// ErrorReporter is an informer that can tell why it is not filled or not up to date. Informers of a cache are.
type ErrorReporter interface {
	// LastError returns the server's latest refusal or the latest failed attempt, or nil while the informer is
	// up to date or has not tried yet.
	LastError() error
}

// InformerGetOption changes how an informer is got.
type InformerGetOption func(*InformerGetOptions)

// InformerGetOptions tells how an informer is got.
type InformerGetOptions struct {
	// BlockUntilSynced tells whether to wait until the informer is filled. Nil means true.
	BlockUntilSynced *bool
}

// BlockUntilSynced tells whether getting an informer waits until it is filled. Without the wait, an informer is
// also given for a kind that is not installed yet; it is filled once the kind is there.
func BlockUntilSynced(shouldBlock bool) InformerGetOption {
	return func(o *InformerGetOptions) { o.BlockUntilSynced = &shouldBlock }
}
