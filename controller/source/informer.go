// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// Informer delivers the events of an informer that somebody else runs.
type Informer = TypedInformer[client.Object, reconcile.Request]

// TypedInformer is Informer for other types. Informer and Handler must be
// set. A controller does not wait for the informer to be filled.
type TypedInformer[object any, request comparable] struct {
	Informer   cache.Informer
	Handler    handler.TypedEventHandler[object, request]
	Predicates []predicate.TypedPredicate[object]
}

var _ Source = &Informer{}

func (is *TypedInformer[object, request]) String() string {
	return fmt.Sprintf("informer source: %p", is.Informer)
}

// Validate tells what is missing.
func (is *TypedInformer[object, request]) Validate() error {
	switch {
	case apiutil.IsNil(is.Informer):
		return errors.New("informer source: Informer is nil")
	case apiutil.IsNil(is.Handler):
		return errors.New("informer source: Handler is nil")
	}
	return handler.Validate(is.Handler)
}

// Start implements TypedSource.
func (is *TypedInformer[object, request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	_, err := is.StartRun(ctx, queue)
	return err
}

// StartRun implements TypedRunner.
func (is *TypedInformer[object, request]) StartRun(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) (Run, error) {
	if err := is.Validate(); err != nil {
		return nil, err
	}
	if err := handler.Prepare(is.Handler); err != nil {
		return nil, fmt.Errorf("%s: %w", is, err)
	}
	registration, err := is.Informer.AddEventHandler(deliver(ctx, is.String(), is.Handler, is.Predicates, queue))
	if err != nil {
		return nil, err
	}
	r := make(plainRun)
	go func() {
		defer close(r)
		<-ctx.Done()
		if err := is.Informer.RemoveEventHandler(registration); err != nil {
			log.FromContext(ctx).Error(err, "Could not take the handler from its informer", "source", is.String())
		}
	}()
	return r, nil
}

// plainRun is a run that nobody waits to be synced; it is closed when done.
type plainRun chan struct{}

func (plainRun) WaitForSync(context.Context) error { return nil }
func (r plainRun) Done() <-chan struct{}           { return r }
