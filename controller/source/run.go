// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"k8s.io/client-go/util/workqueue"
)

// Run is one start of a source.
type Run interface {
	// WaitForSync blocks until everything that was there when the source was
	// started is queued, or until the context ends; then it tells why that
	// took so long.
	WaitForSync(ctx context.Context) error

	// Done is closed when, after its context ended, the run has let go of
	// everything: no event will be delivered any more and its goroutines are
	// gone.
	Done() <-chan struct{}
}

// TypedRunner is a TypedSource that can be started more than once, and waited
// for each time. Kind, Informer, Channel and Until are runners; a controller
// prefers StartRun to Start.
type TypedRunner[request comparable] interface {
	TypedSource[request]
	StartRun(context.Context, workqueue.TypedRateLimitingInterface[request]) (Run, error)
}

// StartRun starts a source so that it can be waited for as well as it allows:
// a source that is no runner tells nothing about its end, so its run counts as
// done at once.
func StartRun[request comparable](ctx context.Context, src TypedSource[request], queue workqueue.TypedRateLimitingInterface[request]) (Run, error) {
	if runner, ok := src.(TypedRunner[request]); ok {
		return runner.StartRun(ctx, queue)
	}
	if err := src.Start(ctx, queue); err != nil {
		return nil, err
	}
	foreign := foreignRun{wait: func(context.Context) error { return nil }}
	if syncing, ok := src.(TypedSyncingSource[request]); ok {
		foreign.wait = syncing.WaitForSync
	}
	return foreign, nil
}

// foreignRun is a run of a source that is no runner.
type foreignRun struct{ wait func(context.Context) error }

func (r foreignRun) WaitForSync(ctx context.Context) error { return r.wait(ctx) }
func (r foreignRun) Done() <-chan struct{}                 { return closed }

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
