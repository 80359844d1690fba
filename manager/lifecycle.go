// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/manager/leaderelection"
)

// errRanBefore refuses a second start.
var errRanBefore = errors.New("manager: started before; a manager runs once")

// lifecycle starts and stops the groups. It knows nothing of clusters and servers, only of runnables.
type lifecycle struct {
	log      logr.Logger
	base     func() context.Context // of the runnables' contexts
	grace    time.Duration          // of the stop: 0 is none, negative without limit
	election *election              // nil: the last stage starts unasked
	elected  chan struct{}          // closed when the last stage starts for the first time

	groups [stageCount]*group

	mu       sync.Mutex
	started  bool               // guarded by mu
	stopping bool               // guarded by mu
	first    error              // guarded by mu: of a runnable, before the stop
	abort    context.CancelFunc // guarded by mu: ends the run; nil before start
}

func newLifecycle(logger logr.Logger, base func() context.Context, grace time.Duration, e *election) *lifecycle {
	l := &lifecycle{log: logger, base: base, grace: grace, election: e, elected: make(chan struct{})}
	for s := range stageCount {
		l.groups[s] = newGroup(s, l.fail)
	}
	return l
}

// add takes r into its stage, and starts it if the stage has started.
func (l *lifecycle) add(r Runnable) error {
	l.mu.Lock()
	over := l.stopping || l.first != nil
	l.mu.Unlock()
	if over {
		return fmt.Errorf("runnable %s not added: %w", nameOf(r), errStopped)
	}
	if w, ok := r.(warmable); ok {
		if err := l.groups[stageWarmup].add(warmup{w}); err != nil {
			return err
		}
	}
	return l.groups[stageOf(r)].add(r)
}

// fail hears of each runnable that ended with an error. The first ends the run.
func (l *lifecycle) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.stopping && l.first == nil:
		l.first = err
		l.abort()
	case errors.Is(err, context.Canceled):
		// Its context was cancelled, and it says so: an orderly end.
	default:
		l.log.Error(err, "another error, after the stop had begun")
	}
}

// begin marks the start. It can be done once.
func (l *lifecycle) begin(abort context.CancelFunc) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started {
		return errRanBefore
	}
	l.started, l.abort = true, abort
	return nil
}

// finish marks the beginning of the stop, and returns why it came to it; nil if that was wanted.
func (l *lifecycle) finish(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = true
	if ctx.Err() != nil && errors.Is(l.first, context.Canceled) {
		return nil // a runnable that looks at ctx itself
	}
	return l.first
}

func (l *lifecycle) hasStarted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started
}

// run starts all stages, waits until ctx ends or a runnable fails, and stops them. It returns the runnable's error, or what
// went wrong with the stop.
func (l *lifecycle) run(ctx context.Context) error {
	run, abort := context.WithCancel(ctx)
	defer abort()
	if err := l.begin(abort); err != nil {
		return err
	}
	base := log.IntoContext(l.base(), l.log)
	if err := l.start(base, run); err != nil && run.Err() == nil {
		l.fail(err)
	}
	<-run.Done()
	cause := l.finish(ctx)
	if err := l.stop(cause); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// start runs through startOrder, until run ends.
func (l *lifecycle) start(base, run context.Context) error {
	for _, s := range startOrder {
		if run.Err() != nil {
			return nil
		}
		if s == stageElected && l.election != nil {
			l.election.begin(run, l, base)
			return nil
		}
		if s == stageElected {
			close(l.elected)
		}
		if err := l.groups[s].start(base, run); err != nil {
			return fmt.Errorf("manager: start %s: %w", stageRules[s].name, err)
		}
	}
	return nil
}

// stop runs through stopOrder, within the grace period. Every stage is told to stop, also when an earlier one does not.
func (l *lifecycle) stop(cause error) error {
	grace := l.graceFor(cause)
	limit, done := withGrace(grace)
	defer done()
	var late []string
	for _, row := range stopOrder {
		if row[0] == stageLease {
			l.election.end(len(l.groups[stageElected].offenders()) == 0)
			continue
		}
		for _, s := range row {
			l.log.V(1).Info("stopping and waiting for " + stageRules[s].name)
			l.groups[s].close()
		}
		for _, s := range row {
			for _, name := range l.groups[s].wait(limit) {
				late = append(late, fmt.Sprintf("%s (%s)", name, stageRules[s].name))
			}
		}
	}
	if len(late) > 0 && grace != 0 && !errors.Is(cause, leaderelection.ErrLost) {
		return fmt.Errorf("manager: not stopped within the grace period of %s: %s: %w", grace, strings.Join(late, ", "), context.DeadlineExceeded)
	}
	return nil
}

// graceFor is how long this stop may take. A leader that lost its lease has only until another may lead; the fence refuses
// its writes in any case.
func (l *lifecycle) graceFor(cause error) time.Duration {
	if l.election == nil || !errors.Is(cause, leaderelection.ErrLost) {
		return l.grace
	}
	left := l.election.timing.LeaseDuration - l.election.timing.RenewDeadline
	if l.grace < 0 {
		return left
	}
	return min(l.grace, left)
}

func withGrace(grace time.Duration) (context.Context, context.CancelFunc) {
	if grace < 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), grace)
}
