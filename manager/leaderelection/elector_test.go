// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// board is the record that the locks of one test share, with an API server's rules.
type board struct {
	mu      sync.Mutex
	record  *Record
	version int
	writes  []Record
}

// look is the record now, the zero value if there is none, and all that was ever written.
func (b *board) look() (now Record, writes []Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.record != nil {
		now = *b.record
	}
	return now, slices.Clone(b.writes)
}

// boardLock is one candidate's way to the board. Its knobs may be turned while it is used.
type boardLock struct {
	board *board
	id    string

	mu      sync.Mutex
	version int
	delay   time.Duration // before each answer
	fail    error         // instead of each answer
	mute    bool          // writes are stored, but the answer is lost
	events  []string
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *boardLock) call(ctx context.Context, write bool, do func() error) error {
	l.mu.Lock()
	delay, fail, mute := l.delay, l.fail, l.mute
	l.mu.Unlock()
	if fail != nil {
		return fail
	}
	l.board.mu.Lock()
	err := do()
	l.board.mu.Unlock()
	if mute && write {
		<-ctx.Done()
		return ctx.Err()
	}
	if delay > 0 {
		if e := sleep(ctx, delay); e != nil {
			return e
		}
	}
	return err
}

func (l *boardLock) set(f func(*boardLock)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

func (l *boardLock) Get(ctx context.Context) (r *Record, err error) {
	err = l.call(ctx, false, func() error {
		if l.board.record == nil {
			return apierrors.NewNotFound(leases, "x")
		}
		r, l.version = new(*l.board.record), l.board.version
		return nil
	})
	return r, err
}

func (l *boardLock) Create(ctx context.Context, r Record) error {
	return l.call(ctx, true, func() error {
		if l.board.record != nil {
			return apierrors.NewAlreadyExists(leases, "x")
		}
		l.store(r)
		return nil
	})
}

func (l *boardLock) Update(ctx context.Context, r Record) error {
	return l.call(ctx, true, func() error {
		switch {
		case l.board.record == nil:
			return apierrors.NewNotFound(leases, "x")
		case l.version != l.board.version:
			return apierrors.NewConflict(leases, "x", errors.New("written meanwhile"))
		}
		l.store(r)
		return nil
	})
}

func (l *boardLock) store(r Record) {
	l.board.record = &r
	l.board.version++
	l.version = l.board.version
	l.board.writes = append(l.board.writes, r)
}

func (l *boardLock) RecordEvent(e string) {
	l.set(func(l *boardLock) { l.events = append(l.events, e) })
}
func (l *boardLock) Identity() string { return l.id }
func (l *boardLock) Describe() string { return "ns/x" }

var defaults = Timing{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}

func candidate(t *testing.T, b *board, id string) (*Elector, *boardLock) {
	t.Helper()
	l := &boardLock{board: b, id: id}
	e, err := NewElector(l, defaults, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return e, l
}

// lead campaigns at once and fails the test if another leads.
func lead(t *testing.T, e *Elector) *Term {
	t.Helper()
	began := time.Now()
	term, err := e.Campaign(t.Context())
	if err != nil || time.Since(began) != 0 {
		t.Fatalf("not leading at once: %v after %s", err, time.Since(began))
	}
	return term
}

func within(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s after %s, want %s to %s", what, got, least, most)
	}
}

func TestTimingValidate(t *testing.T) {
	for _, c := range []struct {
		lease, renew, retry time.Duration
		ok                  bool
	}{
		{15, 10, 2, true},
		{10, 10, 2, false},
		{10, 15, 2, false},
		{15, 10, 9, false},
		{15, 10, 0, false},
		{15, 10, -1, false},
	} {
		err := Timing{c.lease * time.Second, c.renew * time.Second, c.retry * time.Second}.Validate()
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := NewElector(&boardLock{}, defaults, logr.Discard()); err == nil {
		t.Error("a lock without identity was accepted")
	}
}

func TestHoldRenewsAndRecordKeepsItsShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		e, l := candidate(t, b, "a")
		start := time.Now()
		term := lead(t, e)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := e.Hold(ctx, term); err != nil {
			t.Fatal(err)
		}
		last, writes := b.look()
		if n := len(writes); n < 28 || n > 31 {
			t.Errorf("%d writes in a minute, want one each 2 s", n)
		}
		want := Record{HolderIdentity: "a", LeaseDurationSeconds: 15, AcquireTime: start, RenewTime: last.RenewTime}
		if !last.same(want) {
			t.Errorf("record %+v, want %+v", last, want)
		}
		if since := time.Since(last.RenewTime); since > 2*time.Second {
			t.Errorf("last renewal %s ago", since)
		}
		if term.End() != 0 {
			t.Error("writes under way")
		}
		if len(l.events) != 1 || l.events[0] != "became leader" {
			t.Errorf("events: %q", l.events)
		}
	})
}

// MG-2, release on.
func TestReleaseHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		a, _ := candidate(t, b, "a")
		term := lead(t, a)
		won := make(chan time.Time, 1)
		go func() {
			e, _ := candidate(t, b, "b")
			if term, err := e.Campaign(t.Context()); err == nil {
				won <- time.Now()
				term.End()
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := a.Hold(ctx, term); err != nil {
			t.Fatal(err)
		}
		term.End()
		released := time.Now()
		if err := a.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		given, _ := b.look()
		if given.HolderIdentity != "" || given.LeaseDurationSeconds != 1 || given.LeaderTransitions != 0 {
			t.Errorf("released record: %+v", given)
		}
		within(t, "b leads", (<-won).Sub(released), 0, 3*time.Second)
		taken, before := b.look()
		if taken.HolderIdentity != "b" || taken.LeaderTransitions != 1 {
			t.Errorf("record: %+v", taken)
		}
		err := a.Release(t.Context())
		if _, after := b.look(); err != nil || len(after) != len(before) {
			t.Errorf("releasing another's lease: %v, %d writes", err, len(after)-len(before))
		}
	})
}

// MG-2, release off, and a leader that was killed: others wait for the whole lease, and not much longer.
func TestSilenceIsWaitedOut(t *testing.T) {
	for _, stepDown := range []string{"release off", "kill -9"} {
		t.Run(stepDown, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &board{}
				a, _ := candidate(t, b, "a")
				term := lead(t, a)
				won := make(chan time.Time, 1)
				go func() {
					e, _ := candidate(t, b, "b")
					if term, err := e.Campaign(t.Context()); err == nil {
						won <- time.Now()
						term.End()
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), 31*time.Second)
				defer cancel()
				if err := a.Hold(ctx, term); err != nil {
					t.Fatal(err)
				}
				if stepDown == "release off" {
					term.End()
				}
				record, _ := b.look()
				silent := record.RenewTime
				// b sees the last renewal up to one (jittered) retry after it was written.
				within(t, "b leads", (<-won).Sub(silent), 15*time.Second, 15*time.Second+2400*time.Millisecond+200*time.Millisecond)
			})
		})
	}
}

func TestForeignClockDoesNotMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A holder whose clock is an hour ahead, one whose clock is an hour behind: both get their time.
		for _, off := range []time.Duration{time.Hour, -time.Hour} {
			b := &board{record: &Record{HolderIdentity: "z", LeaseDurationSeconds: 15, RenewTime: time.Now().Add(off)}, version: 1}
			e, _ := candidate(t, b, "a")
			began := time.Now()
			term, err := e.Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			within(t, "leading", time.Since(began), 15*time.Second, 15200*time.Millisecond)
			term.End()
		}
	})
}

// A holder whose clock jumps, forwards and back, keeps its lease as long as it gives signs of life, and no longer.
func TestHolderWhoseClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{record: &Record{HolderIdentity: "z", LeaseDurationSeconds: 15, RenewTime: time.Now()}, version: 1}
		e, _ := candidate(t, b, "a")
		led := make(chan time.Time, 1)
		go func() {
			term, err := e.Campaign(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			led <- time.Now()
			term.End()
		}()
		var last time.Time
		for _, jump := range []time.Duration{time.Hour, -time.Hour, 0, -24 * time.Hour, 24 * time.Hour, -time.Second, 0} {
			time.Sleep(10 * time.Second)
			last = time.Now()
			b.mu.Lock()
			b.record = &Record{HolderIdentity: "z", LeaseDurationSeconds: 15, RenewTime: last.Add(jump)}
			b.version++
			b.mu.Unlock()
		}
		// The candidate sees the last sign within a retry period, and waits from then on.
		within(t, "leading", (<-led).Sub(last), 15*time.Second, 15*time.Second+2*defaults.RetryPeriod)
	})
}

// A term is measured by the monotonic clock, so that it neither shrinks nor grows when somebody sets the time.
func TestTermGoesByTheMonotonicClock(t *testing.T) {
	e, _ := candidate(t, &board{}, "a")
	term, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer term.End()
	monotonic := func(at time.Time) bool { return strings.Contains(at.String(), " m=") }
	if !monotonic(term.renewed) {
		t.Errorf("the term began at %v", term.renewed)
	}
	led, err := e.attempt(t.Context(), time.Second)
	if err != nil || !led || !term.renew(e.sent) {
		t.Fatalf("not renewed: %v", err)
	}
	if !monotonic(term.renewed) || !monotonic(e.seenAt) {
		t.Errorf("renewed at %v, the record seen at %v", term.renewed, e.seenAt)
	}
}

func TestLossIsReportedAtRenewDeadline(t *testing.T) {
	for name, broke := range map[string]func(*boardLock){
		"refused":           func(l *boardLock) { l.fail = apierrors.NewServiceUnavailable("gone") },
		"no answer":         func(l *boardLock) { l.delay = time.Hour },
		"answers are lost":  func(l *boardLock) { l.mute = true },
		"answer comes late": func(l *boardLock) { l.delay = 11 * time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &board{}
				e, l := candidate(t, b, "a")
				began := time.Now()
				term := lead(t, e)
				l.set(broke)
				err := e.Hold(t.Context(), term)
				if !errors.Is(err, ErrLost) {
					t.Fatalf("Hold: %v", err)
				}
				within(t, "lost", time.Since(began), 10*time.Second, 10*time.Second)
				if _, _, err := term.Begin(t.Context()); !errors.Is(err, ErrTermOver) {
					t.Errorf("a write after the loss: %v", err)
				}
			})
		})
	}
}

func TestShortTroubleIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		e, l := candidate(t, b, "a")
		term := lead(t, e)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		held := make(chan error, 1)
		go func() { held <- e.Hold(ctx, term) }()
		for _, broke := range []func(*boardLock){
			func(l *boardLock) { l.fail = apierrors.NewServiceUnavailable("gone") },
			func(l *boardLock) { l.delay = time.Second },
		} {
			l.set(broke)
			time.Sleep(7 * time.Second)
			l.set(func(l *boardLock) { l.fail, l.delay = nil, 0 })
			time.Sleep(7 * time.Second)
		}
		// A foreign writer that touches labels, and one that deletes the lease.
		b.mu.Lock()
		b.version++
		b.mu.Unlock()
		time.Sleep(5 * time.Second)
		b.mu.Lock()
		b.record = nil
		b.mu.Unlock()
		time.Sleep(5 * time.Second)
		if r, _ := b.look(); r.HolderIdentity != "a" {
			t.Errorf("record: %+v", r)
		}
		if err := <-held; err != nil {
			t.Errorf("Hold: %v", err)
		}
		term.End()
	})
}

func TestStolenLeaseEndsTheTermAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		e, _ := candidate(t, b, "a")
		term := lead(t, e)
		b.mu.Lock()
		b.record = &Record{HolderIdentity: "thief", LeaseDurationSeconds: 15, RenewTime: time.Now()}
		b.version++
		b.mu.Unlock()
		began := time.Now()
		if err := e.Hold(t.Context(), term); !errors.Is(err, ErrLost) || err.Error() != "leader election lost: thief leads" {
			t.Fatalf("Hold: %v", err)
		}
		within(t, "lost", time.Since(began), 0, 2*time.Second)
		if _, _, err := term.Begin(t.Context()); !errors.Is(err, ErrTermOver) {
			t.Errorf("a write after the theft: %v", err)
		}
	})
}

// A write whose outcome is unknown may have made us the holder: the next attempt must find that out.
func TestUnknownOutcomeOfAcquiring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{record: &Record{RenewTime: time.Now()}, version: 1}
		e, l := candidate(t, b, "a")
		l.set(func(l *boardLock) { l.mute = true })
		time.AfterFunc(5*time.Second, func() { l.set(func(l *boardLock) { l.mute = false }) })
		began := time.Now()
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer term.End()
		within(t, "leading", time.Since(began), 10*time.Second, 12500*time.Millisecond)
		if r, writes := b.look(); r.HolderIdentity != "a" || r.LeaderTransitions != 1 || len(writes) != 2 {
			t.Errorf("record after %d writes: %+v", len(writes), r)
		}
	})
}

// A term counts from when the write was sent that won it, not from when the attempt began.
func TestSlowReadDoesNotShortenTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{record: &Record{RenewTime: time.Now()}, version: 1}
		e, l := candidate(t, b, "a")
		l.set(func(l *boardLock) { l.delay = 4 * time.Second })
		term, err := e.Campaign(t.Context()) // 4 s to read, 4 s to write
		if err != nil {
			t.Fatal(err)
		}
		if left := term.remaining(); left != 6*time.Second {
			t.Errorf("%s left of the term, want 6s", left)
		}
		term.End()
	})
}

func TestOneLeaderAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var mu sync.Mutex
		writing, terms := "", 0
		var wg sync.WaitGroup
		for _, id := range []string{"a", "b", "c"} {
			wg.Go(func() {
				e, l := candidate(t, b, id)
				for round := 0; ctx.Err() == nil; round++ {
					term, err := e.Campaign(ctx)
					if err != nil {
						return
					}
					// It works for a while, is then cut off, and goes on trying to write all the same.
					go func() {
						time.Sleep(time.Duration(20+7*round) * time.Second)
						l.set(func(l *boardLock) { l.fail = errors.New("cut off") })
						time.Sleep(40 * time.Second)
						l.set(func(l *boardLock) { l.fail = nil })
					}()
					var writer sync.WaitGroup
					writer.Go(func() {
						mu.Lock()
						terms++
						mu.Unlock()
						for {
							_, done, err := term.Begin(ctx)
							if err != nil {
								return
							}
							mu.Lock()
							if writing != "" {
								t.Errorf("%s writes while %s does", id, writing)
							}
							writing = id
							mu.Unlock()
							time.Sleep(50 * time.Millisecond)
							mu.Lock()
							writing = ""
							mu.Unlock()
							done()
						}
					})
					_ = e.Hold(ctx, term)
					writer.Wait()
					term.End()
					_ = sleep(ctx, time.Minute)
				}
			})
		}
		wg.Wait()
		if terms < 5 {
			t.Errorf("%d terms", terms)
		}
		time.Sleep(2 * time.Minute) // the cut-off timers of the last round
	})
}
