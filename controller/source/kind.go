// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// Kind delivers the events of the objects of obj's kind that the cache holds.
// The predicates are asked in order before the handler.
//
// While the cache has no informer for the kind, for example because its custom
// resource definition is missing, the source tries again; WaitForSync then
// tells the reason.
func Kind[object client.Object](
	cache cache.Cache,
	obj object,
	handler handler.TypedEventHandler[object, reconcile.Request],
	predicates ...predicate.TypedPredicate[object],
) SyncingSource {
	return TypedKind(cache, obj, handler, predicates...)
}

// TypedKind is Kind for keys of any comparable type.
func TypedKind[object client.Object, request comparable](
	cache cache.Cache,
	obj object,
	handler handler.TypedEventHandler[object, request],
	predicates ...predicate.TypedPredicate[object],
) TypedSyncingSource[request] {
	return &kind[object, request]{cache: cache, object: obj, handler: handler, predicates: predicates}
}

// How long a Kind waits before it tries again to get its informer.
const (
	firstKindRetry = 100 * time.Millisecond
	lastKindRetry  = 5 * time.Second
)

type kind[object client.Object, request comparable] struct {
	cache      cache.Cache
	object     object
	handler    handler.TypedEventHandler[object, request]
	predicates []predicate.TypedPredicate[object]

	latest atomic.Pointer[kindRun] // the run WaitForSync means
}

func (k *kind[object, request]) String() string {
	if apiutil.IsNil(k.object) {
		return "kind source: unknown type"
	}
	return fmt.Sprintf("kind source: %T", k.object)
}

// Validate tells what is wrong with how the source was made, if anything.
func (k *kind[object, request]) Validate() error {
	switch {
	case apiutil.IsNil(k.object):
		return errors.New("kind source: the object is nil; give an object of the kind to watch")
	case apiutil.IsNil(k.cache):
		return fmt.Errorf("%s: the cache is nil", k)
	case apiutil.IsNil(k.handler):
		return fmt.Errorf("%s: the handler is nil", k)
	}
	if err := handler.Validate(k.handler); err != nil {
		return fmt.Errorf("%s: %w", k, err)
	}
	return nil
}

// Start implements TypedSource.
func (k *kind[object, request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	_, err := k.StartRun(ctx, queue)
	return err
}

// StartRun implements TypedRunner.
func (k *kind[object, request]) StartRun(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) (Run, error) {
	if err := k.Validate(); err != nil {
		return nil, err
	}
	r := &kindRun{
		what:   fmt.Sprintf("%T", k.object),
		synced: make(chan struct{}),
		done:   make(chan struct{}),
	}
	d := deliver(ctx, k.String(), k.handler, k.predicates, queue)
	k.latest.Store(r)
	go r.drive(ctx, func() (cache.Informer, error) {
		if err := handler.Prepare(k.handler); err != nil {
			return nil, err
		}
		return k.cache.GetInformer(ctx, k.object, cache.BlockUntilSynced(false))
	}, d)
	return r, nil
}

// WaitForSync implements TypedSyncingSource.
func (k *kind[object, request]) WaitForSync(ctx context.Context) error {
	r := k.latest.Load()
	if r == nil {
		return fmt.Errorf("%s: not started", k)
	}
	return r.WaitForSync(ctx)
}

// kindRun is one run of a Kind. Its goroutine is drive.
type kindRun struct {
	what   string
	synced chan struct{} // closed when the handler has heard of everything
	done   chan struct{} // closed when drive returns

	mu       sync.Mutex
	reason   error          // why there is no informer yet
	informer cache.Informer // once there is one
}

func (r *kindRun) Done() <-chan struct{} { return r.done }

// drive gets the informer, adds the handler, waits for the end of the context
// and takes the handler away again.
func (r *kindRun) drive(ctx context.Context, get func() (cache.Informer, error), h toolscache.ResourceEventHandler) {
	defer close(r.done)
	informer, registration := r.attach(ctx, get, h)
	if informer == nil {
		return
	}
	if checker := registration.HasSyncedChecker(); checker != nil {
		select {
		case <-checker.Done():
			close(r.synced)
		case <-ctx.Done():
		}
	} else {
		close(r.synced)
	}
	<-ctx.Done()
	if err := informer.RemoveEventHandler(registration); err != nil {
		log.FromContext(ctx).Error(err, "Could not take the handler from its informer", "kind", r.what)
	}
}

// attach adds the handler to the informer, trying until the context ends.
func (r *kindRun) attach(ctx context.Context, get func() (cache.Informer, error), h toolscache.ResourceEventHandler) (cache.Informer, toolscache.ResourceEventHandlerRegistration) {
	logger := log.FromContext(ctx)
	for delay := firstKindRetry; ; delay = min(2*delay, lastKindRetry) {
		informer, err := get()
		if err == nil {
			var registration toolscache.ResourceEventHandlerRegistration
			registration, err = informer.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{Logger: &logger})
			if err == nil {
				r.mu.Lock()
				r.reason, r.informer = nil, informer
				r.mu.Unlock()
				return informer, registration
			}
		}
		if ctx.Err() != nil {
			return nil, nil
		}
		if r.newReason(err) {
			logger.Error(err, "Cannot watch the kind yet, will keep trying; if it is a custom resource, install its definition", "kind", r.what)
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, nil
		}
	}
}

// newReason keeps the reason and tells whether it reads differently from the
// last one.
func (r *kindRun) newReason(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	isNew := r.reason == nil || r.reason.Error() != err.Error()
	r.reason = err
	return isNew
}

// why tells what is known to be in the way of the sync.
func (r *kindRun) why() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason != nil {
		return r.reason
	}
	if reporter, ok := r.informer.(interface{ LastError() error }); ok {
		return reporter.LastError()
	}
	return nil
}

// WaitForSync implements Run.
func (r *kindRun) WaitForSync(ctx context.Context) error {
	select {
	case <-r.synced:
		return nil
	case <-r.done:
	case <-ctx.Done():
	}
	select {
	case <-r.synced:
		return nil
	default:
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		if why := r.why(); why != nil {
			return fmt.Errorf("timed out waiting for cache to be synced for Kind %s: %w", r.what, why)
		}
		return fmt.Errorf("timed out waiting for cache to be synced for Kind %s", r.what)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return context.Canceled
}
