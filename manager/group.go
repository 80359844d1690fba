// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// errStopped is why a runnable is not taken any more.
var errStopped = errors.New("the manager is stopping or has stopped")

// group is the set of runnables of a stage, and the owner of their goroutines. It starts what it has when it is started and
// what comes later when it comes; it can be halted and started again, and is closed for good.
type group struct {
	stage stage
	fail  func(error) // gets each runnable's error, named; must not block

	mu      sync.Mutex
	members []Runnable
	closed  bool
	ctx     context.Context // of the runnables; nil unless started
	cancel  context.CancelFunc
	next    int            // key of the next entry of running
	running map[int]string // names of the runnables that have not returned
	empty   chan struct{}  // closed when running becomes empty; nil while it is
}

func newGroup(s stage, fail func(error)) *group {
	return &group{stage: s, fail: fail, running: map[int]string{}}
}

// add takes r, and starts it if the group is started.
func (g *group) add(r Runnable) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return fmt.Errorf("runnable %s not added: %w", nameOf(r), errStopped)
	}
	g.members = append(g.members, r)
	if g.ctx != nil {
		g.launch(r)
	}
	return nil
}

// start starts all members, with ctx as their context until halt or close, and returns when they are ready. It gives up
// when limit ends: what was started is running then.
func (g *group) start(ctx, limit context.Context) error {
	g.mu.Lock()
	if g.closed || g.ctx != nil {
		g.mu.Unlock()
		return errStopped
	}
	g.ctx, g.cancel = context.WithCancel(ctx)
	members := slices.Clone(g.members)
	for _, r := range members {
		g.launch(r)
	}
	g.mu.Unlock()

	ready := stageRules[g.stage].ready
	if ready == nil {
		return nil
	}
	for _, r := range members {
		if err := ready(limit, r); err != nil {
			return fmt.Errorf("runnable %s is not ready: %w", nameOf(r), err)
		}
	}
	return nil
}

// launch runs r in a goroutine of its own. The caller holds mu.
func (g *group) launch(r Runnable) {
	ctx, name, key := g.ctx, nameOf(r), g.next
	g.next++
	if len(g.running) == 0 {
		g.empty = make(chan struct{})
	}
	g.running[key] = name
	go func() {
		err := r.Start(ctx)
		// The error first: who sees the group empty must have seen why.
		if err != nil {
			g.fail(fmt.Errorf("runnable %s: %w", name, err))
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.running, key)
		if len(g.running) == 0 {
			close(g.empty)
			g.empty = nil
		}
	}()
}

// halt cancels the runnables' context. They stay members.
func (g *group) halt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx != nil {
		g.cancel()
		g.ctx = nil
	}
}

// close halts the group and lets nothing in any more.
func (g *group) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.halt()
}

// wait blocks until no runnable is running, or limit ends; it returns the names of those that still are.
func (g *group) wait(limit context.Context) []string {
	for {
		g.mu.Lock()
		empty := g.empty
		g.mu.Unlock()
		if empty == nil {
			return nil
		}
		select {
		case <-empty:
		case <-limit.Done():
			return g.offenders()
		}
	}
}

// offenders are the names of the runnables that have not returned.
func (g *group) offenders() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Values(g.running))
}
