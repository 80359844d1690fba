// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/fault"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
)

// controller is the one implementation of TypedController.
type controller[request comparable] struct {
	name       string
	options    TypedOptions[request]
	log        logr.Logger
	metrics    *meter
	outcomes   outcomes
	reconciler reconcile.TypedReconciler[request]

	mu      sync.Mutex
	sources []source.TypedSource[request]
	term    *term[request] // from Start or Warmup until it has ended
	started bool           // whether Start is under way

	claim   func() (release func(), err error) // takes the name; nil if nobody else may mind
	release func()                             // gives the name back
}

// term is what exists from one start to its end: the queue and the running
// sources.
type term[request comparable] struct {
	ctx    context.Context
	cancel context.CancelFunc
	intake intake[request]
	queue  workqueue.TypedRateLimitingInterface[request]
	faults *fault.Keeper
	sync   func() error // starts the sources and waits for them, once

	workers sync.WaitGroup

	mu   sync.Mutex
	runs []source.Run
	wg   sync.WaitGroup // goroutines that start sources
}

// GetLogger implements TypedController.
func (c *controller[request]) GetLogger() logr.Logger { return c.log }

// NeedLeaderElection tells the manager whether the controller must wait for
// the lease.
func (c *controller[request]) NeedLeaderElection() bool { return *c.options.NeedLeaderElection }

// String names the controller where the manager lists what it runs.
func (c *controller[request]) String() string { return fmt.Sprintf("controller %q", c.name) }

// Watch implements TypedController.
func (c *controller[request]) Watch(src source.TypedSource[request]) error {
	if apiutil.IsNil(src) {
		return fmt.Errorf("controller %q: the source is nil", c.name)
	}
	if v, ok := src.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return fmt.Errorf("controller %q: %w", c.name, err)
		}
	}
	c.mu.Lock()
	c.sources = append(slices.DeleteFunc(c.sources, isOver[request]), src)
	t := c.term
	c.mu.Unlock()
	if t == nil {
		return nil
	}
	_, err := c.startSource(t, src)
	return err
}

// Warmup starts the sources and fills the queue ahead of Start, if the
// controller is set to. It returns when the sources have synced.
func (c *controller[request]) Warmup(ctx context.Context) error {
	if !*c.options.EnableWarmup {
		return nil
	}
	t := c.beginTerm(ctx)
	err := t.sync()
	if err == nil || !c.disown(t) { // Start sees the same error and ends the term
		return err
	}
	t.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.started { // else the name is that start's by now
		c.giveNameBack()
	}
	return err
}

// disown takes a term that failed to warm up from the controller, so that a
// Start from now on begins its own, unless Start is under way already.
func (c *controller[request]) disown(t *term[request]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started || c.term != t {
		return false
	}
	c.term = nil
	return true
}

// Start implements TypedController.
func (c *controller[request]) Start(ctx context.Context) error {
	c.mu.Lock()
	if c.started {
		c.mu.Unlock()
		return fmt.Errorf("controller %q is running already; was it added to a manager twice?", c.name)
	}
	if c.claim != nil && c.release == nil {
		release, err := c.claim()
		if err != nil {
			c.mu.Unlock()
			return err
		}
		c.release = release
	}
	c.started = true
	c.mu.Unlock()

	t := c.beginTerm(ctx)
	defer c.endTerm(t)
	// After a warm-up the term has another context: it ends with the earlier.
	defer context.AfterFunc(ctx, t.cancel)()
	if err := t.sync(); err != nil || t.ctx.Err() != nil {
		return err
	}
	c.serve(ctx, t)
	return nil
}

// beginTerm makes the term unless Warmup has. What Warmup made is of no use
// once its context has ended.
func (c *controller[request]) beginTerm(ctx context.Context) *term[request] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.term != nil && c.term.ctx.Err() == nil {
		return c.term
	}
	t := &term[request]{faults: fault.NewKeeper(c.name, c.log)}
	t.queue = c.options.NewQueue(c.name, c.options.RateLimiter)
	t.intake = newIntake(t.queue)
	ctx = fault.IntoContext(log.IntoContext(ctx, c.log), t.faults)
	t.ctx, t.cancel = context.WithCancel(ctx)
	t.sync = sync.OnceValue(func() error { return c.syncSources(t) })
	context.AfterFunc(t.ctx, t.queue.ShutDown)
	c.term = t
	return t
}

// endTerm stops whatever still runs, waits for it and leaves the controller as
// it was before Start.
func (c *controller[request]) endTerm(t *term[request]) {
	t.end()
	c.metrics.active.Set(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term, c.started = nil, false
	c.giveNameBack()
}

// giveNameBack releases the name until the next Start. c.mu is held.
func (c *controller[request]) giveNameBack() {
	if c.claim != nil && c.release != nil {
		c.release()
		c.release = nil
	}
}

// serve runs the workers until the term ends. Reconciles get Start's context,
// not that of a warm-up.
func (c *controller[request]) serve(ctx context.Context, t *term[request]) {
	c.log.Info("Starting workers", "worker count", c.options.MaxConcurrentReconciles)
	c.metrics.workers.Set(float64(c.options.MaxConcurrentReconciles))
	for range c.options.MaxConcurrentReconciles {
		t.workers.Go(func() { c.worker(ctx, t) })
	}
	<-t.ctx.Done()
	c.log.Info("Shutdown signal received, waiting for all workers to finish")
	t.queue.ShutDown()
	t.workers.Wait()
	c.log.Info("All workers finished")
}

// syncSources starts all sources and waits for them.
func (c *controller[request]) syncSources(t *term[request]) error {
	c.mu.Lock()
	sources := append([]source.TypedSource[request](nil), c.sources...)
	c.mu.Unlock()
	c.log.Info("Starting Controller")
	errs := make([]error, len(sources))
	var wg sync.WaitGroup
	for i, src := range sources {
		wg.Go(func() {
			waiting, cancel := context.WithTimeout(t.ctx, c.options.CacheSyncTimeout)
			defer cancel()
			errs[i] = c.syncSource(waiting, t, src)
		})
	}
	wg.Wait()
	if t.ctx.Err() != nil {
		return nil // a stop that was asked for is no failure
	}
	return errors.Join(errs...)
}

// syncSource starts one source and waits for it until ctx ends.
func (c *controller[request]) syncSource(ctx context.Context, t *term[request], src source.TypedSource[request]) error {
	type started struct {
		run source.Run
		err error
	}
	done := make(chan started, 1)
	t.wg.Go(func() {
		run, err := c.startSource(t, src)
		done <- started{run, err}
	})
	var s started
	select {
	case s = <-done:
	case <-ctx.Done():
		return fmt.Errorf("controller %q: Start of %v has not returned within %s; a source must not block", c.name, src, c.options.CacheSyncTimeout)
	}
	if s.err != nil {
		return fmt.Errorf("controller %q: %v: %w", c.name, src, s.err)
	}
	if err := s.run.WaitForSync(ctx); err != nil {
		return fmt.Errorf("controller %q: %v did not sync within %s: %w", c.name, src, c.options.CacheSyncTimeout, err)
	}
	return nil
}

// startSource starts a source for the term.
func (c *controller[request]) startSource(t *term[request], src source.TypedSource[request]) (source.Run, error) {
	c.log.Info("Starting EventSource", "source", fmt.Sprintf("%v", src))
	run, err := source.StartRun(t.ctx, src, t.queue)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.runs = append(slices.DeleteFunc(t.runs, hasEnded), run)
	t.mu.Unlock()
	return run, nil
}

// isOver tells whether a source was for a time that has passed: one of
// source.Until. Without forgetting those, a controller that is given watches
// and loses them for days would grow.
func isOver[request comparable](src source.TypedSource[request]) bool {
	o, ok := src.(interface{ Over() bool })
	return ok && o.Over()
}

func hasEnded(r source.Run) bool {
	select {
	case <-r.Done():
		return true
	default:
		return false
	}
}

// stopPatience is how long the end of a term waits for each source to let go.
// Those of package source do so at once; a source whose Start blocks may not.
const stopPatience = 10 * time.Second

// end stops what runs and waits for it.
func (t *term[request]) end() {
	t.cancel()
	t.queue.ShutDown()
	t.wait()
}

// wait waits until the sources have let go, or loses patience.
func (t *term[request]) wait() {
	over := time.NewTimer(stopPatience)
	defer over.Stop()
	starters := make(chan struct{})
	go func() {
		t.wg.Wait()
		close(starters)
	}()
	select {
	case <-starters:
	case <-over.C:
		return
	}
	t.mu.Lock()
	runs := append([]source.Run(nil), t.runs...)
	t.mu.Unlock()
	for _, r := range runs {
		select {
		case <-r.Done():
		case <-over.C:
			return
		}
	}
}
