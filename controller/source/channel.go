// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// defaultBufferSize is how many events a Channel holds for each run.
const defaultBufferSize = 1024

// Channel delivers what is sent on a Go channel, so events from outside the
// cluster. The sender only waits while the buffer of a run is full. Several
// controllers may share the source: each gets every event that is received
// while it runs. A closed channel ends the events, not the controller.
func Channel[object any](source <-chan event.TypedGenericEvent[object], handler handler.TypedEventHandler[object, reconcile.Request], opts ...ChannelOpt[object, reconcile.Request]) Source {
	return TypedChannel(source, handler, opts...)
}

// TypedChannel is Channel for keys of any comparable type.
func TypedChannel[object any, request comparable](source <-chan event.TypedGenericEvent[object], handler handler.TypedEventHandler[object, request], opts ...ChannelOpt[object, request]) TypedSource[request] {
	c := &channel[object, request]{source: source, handler: handler}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// ChannelOpt changes a Channel.
type ChannelOpt[object any, request comparable] func(*channel[object, request])

// WithPredicates asks the predicates before the handler. Each call adds to
// those given before.
func WithPredicates[object any, request comparable](p ...predicate.TypedPredicate[object]) ChannelOpt[object, request] {
	return func(c *channel[object, request]) { c.predicates = append(c.predicates, p...) }
}

// WithBufferSize sets how many events the source holds for each run; the
// default is 1024. A negative size is refused at start.
func WithBufferSize[object any, request comparable](bufferSize int) ChannelOpt[object, request] {
	return func(c *channel[object, request]) { c.bufferSize = &bufferSize }
}

type channel[object any, request comparable] struct {
	source     <-chan event.TypedGenericEvent[object]
	handler    handler.TypedEventHandler[object, request]
	predicates []predicate.TypedPredicate[object]
	bufferSize *int

	mu   sync.Mutex
	runs []*channelRun[object]
	stop context.CancelFunc // stops spread; nil while there are no runs
	over chan struct{}      // closed when spread has returned
	left []event.TypedGenericEvent[object]
}

// channelRun is one controller's share of a Channel.
type channelRun[object any] struct {
	plainRun
	ctx    context.Context
	buffer chan event.TypedGenericEvent[object]
}

func (c *channel[object, request]) String() string { return fmt.Sprintf("channel source: %p", c) }

// Validate tells what is wrong with how the source was made, if anything.
func (c *channel[object, request]) Validate() error {
	switch {
	case c.source == nil:
		return errors.New("channel source: the channel is nil")
	case apiutil.IsNil(c.handler):
		return errors.New("channel source: the handler is nil")
	case c.bufferSize != nil && *c.bufferSize < 0:
		return fmt.Errorf("channel source: the buffer size %d is negative", *c.bufferSize)
	}
	return handler.Validate(c.handler)
}

// Start implements TypedSource.
func (c *channel[object, request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	_, err := c.StartRun(ctx, queue)
	return err
}

// StartRun implements TypedRunner.
func (c *channel[object, request]) StartRun(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) (Run, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := handler.Prepare(c.handler); err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	size := defaultBufferSize
	if c.bufferSize != nil {
		size = *c.bufferSize
	}
	r := &channelRun[object]{plainRun: make(plainRun), ctx: ctx, buffer: make(chan event.TypedGenericEvent[object], size)}
	d := deliver(ctx, c.String(), c.handler, c.predicates, queue)

	c.mu.Lock()
	left := c.left
	c.left = nil
	c.runs = append(c.runs, r)
	if c.stop == nil {
		c.startSpread(ctx)
	}
	c.mu.Unlock()

	go func() {
		defer close(r.plainRun)
		for i, e := range left {
			if ctx.Err() != nil {
				c.leave(r, left[i:])
				return
			}
			d.generic(e)
		}
		for {
			select {
			case e := <-r.buffer:
				d.generic(e)
			case <-ctx.Done():
				c.leave(r, nil)
				return
			}
		}
	}()
	return r, nil
}

// startSpread starts the goroutine that reads the source. c.mu is held.
func (c *channel[object, request]) startSpread(ctx context.Context) {
	// The reader serves all runs, so it must outlive the context of the first.
	ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	before := c.over
	c.over = over
	go func() {
		defer close(over)
		if before != nil {
			<-before
		}
		c.spread(ctx)
	}()
}

// spread hands each event to every run.
func (c *channel[object, request]) spread(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-c.source:
			if !ok {
				return
			}
			c.hand(e)
		}
	}
}

func (c *channel[object, request]) hand(e event.TypedGenericEvent[object]) {
	c.mu.Lock()
	runs := append([]*channelRun[object](nil), c.runs...)
	c.mu.Unlock()
	handed := false
	for _, r := range runs {
		select {
		case r.buffer <- e:
			handed = true
		case <-r.ctx.Done():
		}
	}
	if !handed {
		c.mu.Lock()
		c.left = append(c.left, e)
		c.mu.Unlock()
	}
}

// leave takes a run away. The last one stops the reader and keeps what it did
// not get to for the next start, so that a restart loses nothing.
func (c *channel[object, request]) leave(r *channelRun[object], rest []event.TypedGenericEvent[object]) {
	c.mu.Lock()
	for i := range c.runs {
		if c.runs[i] == r {
			c.runs = append(c.runs[:i:i], c.runs[i+1:]...)
			break
		}
	}
	if len(c.runs) > 0 {
		c.mu.Unlock()
		return
	}
	c.stop()
	c.stop = nil
	over := c.over
	c.mu.Unlock()

	<-over
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(r.buffer) > 0 {
		rest = append(rest, <-r.buffer)
	}
	c.left = append(rest, c.left...)
}
