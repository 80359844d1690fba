// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrTermOver is why a write was refused or cut: whoever asked for it does not lead any more, or cannot be sure to.
var ErrTermOver = errors.New("term of leadership is over")

// Term is the time in which one leader may write. It counts from the moment the last successful renewal was sent, by the
// monotonic clock: other candidates cannot have seen that renewal earlier, so they wait at least as long as this leader
// believes. Writes may begin until RenewDeadline has passed since, and are cut when LeaseDuration has.
//
// A term that is over stays over. All methods are safe for concurrent use and none blocks.
type Term struct {
	renewDeadline, leaseDuration time.Duration

	over     chan struct{}   // closed once no write may begin
	running  context.Context // cancelled, with a cause, when writes under way are cut
	cut      context.CancelCauseFunc
	lapseAt  *time.Timer // ends the term RenewDeadline after renewed
	cutAt    *time.Timer // cuts it LeaseDuration after renewed
	mu       sync.Mutex
	renewed  time.Time // guarded by mu: when the last successful renewal was sent
	ended    error     // guarded by mu: set when over is closed
	underWay int       // guarded by mu: writes begun and not done
}

// newTerm starts a term whose lease was acquired by a request sent at that time.
func newTerm(sent time.Time, renewDeadline, leaseDuration time.Duration) *Term {
	t := &Term{renewDeadline: renewDeadline, leaseDuration: leaseDuration, over: make(chan struct{}), renewed: sent}
	t.running, t.cut = context.WithCancelCause(context.Background())
	// The callbacks may run at once and use the timers, hence the lock.
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lapseAt = time.AfterFunc(time.Until(sent.Add(renewDeadline)), t.lapse)
	t.cutAt = time.AfterFunc(time.Until(sent.Add(leaseDuration)), t.expire)
	return t
}

// Over is closed when the term ends, for whatever reason.
func (t *Term) Over() <-chan struct{} { return t.over }

// renew moves the end of the term, and says whether it could: a term that is over is not taken up again.
func (t *Term) renew(sent time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.check() != nil {
		return false
	}
	t.renewed = sent
	t.lapseAt.Reset(time.Until(sent.Add(t.renewDeadline)))
	t.cutAt.Reset(time.Until(sent.Add(t.leaseDuration)))
	return true
}

// Begin asks whether a write may be sent now. If so, the write must use the returned context, which is cancelled with cause
// [ErrTermOver] when the lease may have gone to another, and call done when it is answered or given up. If not, the error
// is one for which errors.Is(err, ErrTermOver) holds.
func (t *Term) Begin(ctx context.Context) (writing context.Context, done func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check(); err != nil {
		return nil, nil, err
	}
	t.underWay++
	writing, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(t.running, func() { cancel(context.Cause(t.running)) })
	return writing, sync.OnceFunc(func() {
		unhook()
		cancel(nil)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.underWay--
	}), nil
}

// check says why no write may begin, nil if one may. A late timer must not let one slip through, so the clock is asked too.
// The caller holds mu.
func (t *Term) check() error {
	if t.ended != nil {
		return t.ended
	}
	if since := time.Since(t.renewed); since >= t.renewDeadline {
		t.end(fmt.Errorf("%w: lease last renewed %s ago", ErrTermOver, since.Round(time.Millisecond)))
	}
	return t.ended
}

// end closes the term. The caller holds mu and has seen that ended is nil.
func (t *Term) end(why error) {
	t.ended = why
	t.lapseAt.Stop()
	close(t.over)
}

// lapse is the timer's: a renewal may have come in between, and then the timer was set anew.
func (t *Term) lapse() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.check()
}

func (t *Term) expire() {
	t.mu.Lock()
	since := time.Since(t.renewed)
	t.mu.Unlock()
	if since >= t.leaseDuration {
		t.cut(fmt.Errorf("%w: lease expired", ErrTermOver))
	}
}

// End ends the term now: no write begins any more. It returns how many were under way; those are still cut when the lease
// expires, not before, as no other candidate leads until then unless the lease is released.
func (t *Term) End() (underWay int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		t.end(fmt.Errorf("%w: stepped down", ErrTermOver))
	}
	if t.underWay == 0 {
		t.cutAt.Stop()
	}
	return t.underWay
}

type termKey struct{}

// NewContext returns a context that carries the term: writes made with it, or with one made from it, ask the term first.
func NewContext(ctx context.Context, t *Term) context.Context {
	return context.WithValue(ctx, termKey{}, t)
}

// FromContext returns the term that ctx carries, nil if none.
func FromContext(ctx context.Context) *Term {
	t, _ := ctx.Value(termKey{}).(*Term)
	return t
}

// remaining is how long writes may still begin without another renewal, and so how long a renewal may take.
func (t *Term) remaining() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(t.renewed.Add(t.renewDeadline))
}
