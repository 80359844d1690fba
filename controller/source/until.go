// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// Until is src for as long as ctx lives: when ctx ends it delivers no more and
// lets go of what it held, such as its handler in an informer, while the
// controller goes on. So one watch of a running controller can be taken away:
//
//	ctx, unwatch := context.WithCancel(ctx)
//	err := c.Watch(source.Until(ctx, source.Kind(…)))
//
// Keys that are queued already are still reconciled. The informer itself stays
// in the cache; cache.Informers.RemoveInformer ends it if nobody else needs
// it. A source whose ctx has ended starts as one that has nothing to deliver.
func Until[request comparable](ctx context.Context, src TypedSource[request]) TypedSyncingSource[request] {
	return &until[request]{ctx: ctx, src: src}
}

type until[request comparable] struct {
	ctx    context.Context
	src    TypedSource[request]
	latest atomic.Pointer[Run] // the run WaitForSync means
}

func (u *until[request]) String() string { return fmt.Sprintf("%v (until its context ends)", u.src) }

// Validate tells what is wrong with how the source was made, if anything.
func (u *until[request]) Validate() error {
	switch {
	case apiutil.IsNil(u.ctx):
		return errors.New("source.Until: the context is nil")
	case apiutil.IsNil(u.src):
		return errors.New("source.Until: the source is nil")
	}
	if v, ok := u.src.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// Over tells a controller that it may forget the source.
func (u *until[request]) Over() bool { return u.ctx.Err() != nil }

// Start implements TypedSource.
func (u *until[request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	_, err := u.StartRun(ctx, queue)
	return err
}

// StartRun implements TypedRunner.
func (u *until[request]) StartRun(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) (Run, error) {
	if err := u.Validate(); err != nil {
		return nil, err
	}
	if u.Over() {
		run := Run(foreignRun{wait: func(context.Context) error { return nil }})
		u.latest.Store(&run)
		return run, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(u.ctx, cancel)
	context.AfterFunc(ctx, func() { release() }) // nothing is left at u.ctx when the controller stopped first
	inner, err := StartRun(ctx, u.src, queue)
	if err != nil {
		cancel()
		return nil, err
	}
	run := Run(&untilRun{Run: inner, over: u.ctx})
	u.latest.Store(&run)
	return run, nil
}

// WaitForSync implements TypedSyncingSource.
func (u *until[request]) WaitForSync(ctx context.Context) error {
	run := u.latest.Load()
	if run == nil {
		return fmt.Errorf("%s: not started", u)
	}
	return (*run).WaitForSync(ctx)
}

// untilRun is a run whose sync nobody has to wait for once it is over.
type untilRun struct {
	Run
	over context.Context
}

func (r *untilRun) WaitForSync(ctx context.Context) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.over, cancel)()
	err := r.Run.WaitForSync(waiting)
	if r.over.Err() != nil {
		return nil
	}
	return err
}
