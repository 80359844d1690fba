// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrLost is why [Elector.Hold] ended although nobody asked it to.
var ErrLost = errors.New("leader election lost")

const (
	// retryJitter is by how much at most a candidate's wait is longer than RetryPeriod, so that candidates do not all ask at
	// one moment.
	retryJitter = 0.2
	// expiryJitter is the part of RetryPeriod over which candidates spread when a lease expires.
	expiryJitter = 0.1
	// releaseTries bounds how often a release is tried again when somebody else wrote the record meanwhile.
	releaseTries = 3
)

// Timing says how long things take in an election. LeaseDuration > RenewDeadline > RetryPeriod, with room for its jitter.
type Timing struct {
	// LeaseDuration is how long others wait after the leader's last sign of life.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader goes on without a successful renewal.
	RenewDeadline time.Duration
	// RetryPeriod is the pause between two attempts.
	RetryPeriod time.Duration
}

// Validate says what is wrong with t; nil if nothing.
func (t Timing) Validate() error {
	switch {
	case t.RetryPeriod <= 0:
		return fmt.Errorf("leader election: RetryPeriod %s must be greater than zero", t.RetryPeriod)
	case t.RenewDeadline <= jittered(t.RetryPeriod, 1):
		return fmt.Errorf("leader election: RenewDeadline %s must be greater than RetryPeriod %s with its jitter of a fifth", t.RenewDeadline, t.RetryPeriod)
	case t.LeaseDuration <= t.RenewDeadline:
		return fmt.Errorf("leader election: LeaseDuration %s must be greater than RenewDeadline %s", t.LeaseDuration, t.RenewDeadline)
	}
	return nil
}

// jittered is d, longer by part (0 to 1) of the jitter.
func jittered(d time.Duration, part float64) time.Duration {
	return d + time.Duration(retryJitter*part*float64(d))
}

// Elector takes part in an election. Its methods block, and are called one after the other: Campaign, Hold, Release, and
// again.
type Elector struct {
	lock   Lock
	timing Timing
	log    logr.Logger

	seen   *Record   // the record as last read or written; nil before the first
	seenAt time.Time // when seen was first seen: from then on its holder has time
	sent   time.Time // when the last write of the record was sent: a term counts from there
	told   string    // the holder last logged
}

// NewElector returns an elector for lock, or says what is wrong with the timing.
func NewElector(lock Lock, timing Timing, log logr.Logger) (*Elector, error) {
	if err := timing.Validate(); err != nil {
		return nil, err
	}
	if lock.Identity() == "" {
		return nil, errors.New("leader election: the lock has no identity")
	}
	return &Elector{lock: lock, timing: timing, log: log.WithValues("lock", lock.Describe())}, nil
}

// Campaign blocks until this candidate leads, and returns its term; the caller holds it with Hold. It ends with ctx's error
// when ctx does. Errors of the lock are logged and tried again.
func (e *Elector) Campaign(ctx context.Context) (*Term, error) {
	e.log.Info("campaigning for the leader's lease", "identity", e.lock.Identity())
	for {
		led, err := e.attempt(ctx, e.timing.RenewDeadline)
		if led {
			e.log.Info("leading", "identity", e.lock.Identity())
			e.lock.RecordEvent("became leader")
			return newTerm(e.sent, e.timing.RenewDeadline, e.timing.LeaseDuration), nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e.tell(err)
		if err := sleep(ctx, e.pause()); err != nil {
			return nil, err
		}
	}
}

// Hold renews the term until ctx ends, then returns nil: the term goes on until its time is up or somebody ends it. If the
// term ends first, or another candidate turns out to lead, it ends the term and returns an error for which
// errors.Is(err, ErrLost) holds.
func (e *Elector) Hold(ctx context.Context, t *Term) error {
	var last error
	for {
		pause := time.NewTimer(e.timing.RetryPeriod)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-t.Over():
			pause.Stop()
			return e.lost(last)
		case <-pause.C:
		}
		led, err := e.attempt(ctx, t.remaining())
		switch {
		case ctx.Err() != nil:
			return nil
		case led:
			last = nil
			if !t.renew(e.sent) {
				return e.lost(errors.New("renewed too late"))
			}
		case err == nil:
			t.End()
			return e.lost(fmt.Errorf("%s leads", e.seen.HolderIdentity))
		default:
			last = err
			e.log.Info("lease not renewed, trying again", "error", err.Error())
		}
	}
}

func (e *Elector) lost(why error) error {
	e.lock.RecordEvent("stopped leading")
	if why == nil {
		return ErrLost
	}
	return fmt.Errorf("%w: %w", ErrLost, why)
}

// Release gives the lease up, so that another candidate need not wait for it to expire. The caller has ended the term and
// made sure that no write of it is under way. Nothing happens if another candidate holds it already.
func (e *Elector) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.timing.RenewDeadline)
	defer cancel()
	var err error
	for range releaseTries {
		var found *Record
		if found, err = e.lock.Get(ctx); err != nil {
			break
		}
		if found.HolderIdentity != e.lock.Identity() {
			return nil
		}
		now := time.Now()
		given := *found
		given.HolderIdentity, given.LeaseDurationSeconds = "", 1
		given.AcquireTime, given.RenewTime = now, now
		if err = e.lock.Update(ctx, given); err == nil {
			e.see(&given)
			e.log.Info("lease released")
			e.lock.RecordEvent("stopped leading")
			return nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("release lease %s: %w", e.lock.Describe(), err)
}

// attempt takes or renews the lease, within limit. It returns true if this candidate leads now, false and nil if another
// does, else the error of the lock: then the outcome may be unknown, and the next attempt finds out.
func (e *Elector) attempt(ctx context.Context, limit time.Duration) (led bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if e.leads() {
		// As long as nobody else wrote the record there is no need to read it.
		if err := e.update(ctx); err == nil {
			return true, nil
		} else if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("update lease %s: %w", e.lock.Describe(), err)
		}
	}
	found, err := e.lock.Get(ctx)
	if apierrors.IsNotFound(err) {
		return e.create(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("read lease %s: %w", e.lock.Describe(), err)
	}
	e.see(found)
	if !e.leads() && e.left() > 0 {
		return false, nil
	}
	if err := e.update(ctx); err != nil {
		return false, fmt.Errorf("update lease %s: %w", e.lock.Describe(), err)
	}
	return true, nil
}

func (e *Elector) create(ctx context.Context) (bool, error) {
	e.sent = time.Now()
	r := Record{HolderIdentity: e.lock.Identity(), LeaseDurationSeconds: e.seconds(), AcquireTime: e.sent, RenewTime: e.sent}
	if err := e.lock.Create(ctx, r); err != nil {
		return false, fmt.Errorf("create lease %s: %w", e.lock.Describe(), err)
	}
	e.see(&r)
	return true, nil
}

// update makes the record seen ours, or keeps it so.
func (e *Elector) update(ctx context.Context) error {
	r := *e.seen
	e.sent = time.Now()
	r.RenewTime = e.sent
	r.LeaseDurationSeconds = e.seconds()
	if !e.leads() {
		r.HolderIdentity, r.AcquireTime = e.lock.Identity(), r.RenewTime
		r.LeaderTransitions++
	}
	if err := e.lock.Update(ctx, r); err != nil {
		return err
	}
	e.see(&r)
	return nil
}

// seconds is the lease duration as the record holds it: never shorter than this leader believes, and never the 0 that a
// server refuses.
func (e *Elector) seconds() int {
	return int((e.timing.LeaseDuration + time.Second - 1) / time.Second)
}

func (e *Elector) see(r *Record) {
	if e.seen == nil || !e.seen.same(*r) {
		e.seen, e.seenAt = r, time.Now()
	}
}

// leads says whether the record, as last seen, is ours.
func (e *Elector) leads() bool {
	return e.seen != nil && e.seen.HolderIdentity == e.lock.Identity()
}

// left is how long the holder of the record last seen still has. Its own clock does not matter: what counts is when the
// record changed before our eyes.
func (e *Elector) left() time.Duration {
	if e.seen == nil || e.seen.HolderIdentity == "" {
		return 0
	}
	d := time.Duration(e.seen.LeaseDurationSeconds) * time.Second
	if d <= 0 {
		d = e.timing.LeaseDuration
	}
	return max(0, time.Until(e.seenAt.Add(d)))
}

// pause is how long a candidate waits for its next attempt: not beyond the moment at which the lease it looks at expires.
func (e *Elector) pause() time.Duration {
	p := jittered(e.timing.RetryPeriod, rand.Float64())
	if left := e.left(); left > 0 {
		p = min(p, left+time.Duration(rand.Float64()*expiryJitter*float64(e.timing.RetryPeriod)))
	}
	return p
}

// tell logs why this candidate does not lead: an error each time, a holder when it is a new one.
func (e *Elector) tell(err error) {
	if err != nil {
		e.log.Info("lease not acquired, trying again", "error", err.Error())
		return
	}
	if holder := e.seen.HolderIdentity; holder != e.told {
		e.log.Info("another candidate leads", "holder", holder)
		e.told = holder
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
