// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/wherry-dev/wherry/manager/leaderelection"
	"github.com/wherry-dev/wherry/manager/leaderelection/fake"
)

// running is a lifecycle under way.
type running struct {
	*lifecycle
	cancel context.CancelFunc
	ended  chan error
}

func runIt(t *testing.T, l *lifecycle) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{l, cancel, make(chan error, 1)}
	go func() { r.ended <- l.run(ctx) }()
	return r
}

// writer tries a write each 100 ms with the runnable's context until told otherwise, whatever its context says.
type writer struct {
	*part
	wrote, refused time.Time // the last of each
	until          time.Time
}

func (w *writer) Start(ctx context.Context) error {
	term := leaderelection.FromContext(ctx)
	for time.Now().Before(w.until) {
		if _, done, err := term.Begin(context.Background()); err == nil {
			done()
			w.wrote = time.Now()
		} else {
			w.refused = time.Now()
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// MG-2: who leads when, after the first of two managers was told to stop.
func TestHandOver(t *testing.T) {
	for _, c := range []struct {
		name           string
		release        bool
		stops, grace   time.Duration
		least, most    time.Duration // from the cancel of A to the election of B
		err            string
		releasesWrites int
	}{
		{"release on", true, time.Second, 30 * time.Second, time.Second, 4 * time.Second, "", 1},
		{"release off", false, time.Second, 30 * time.Second, 13 * time.Second, 19 * time.Second, "", 0},
		{"release on, over the grace period", true, 20 * time.Second, 3 * time.Second, 13 * time.Second, 21 * time.Second, "A's runnable (leader)", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				board, j := &fake.Board{}, &journal{}
				logger, logged := logTo()
				a := newLifecycle(logger, background, c.grace, electionOn(t, board.Lock("a"), c.release))
				mustAdd(t, a, &part{"A's runnable", j, c.stops})
				b := newLifecycle(logr.Discard(), background, c.grace, electionOn(t, board.Lock("b"), c.release))
				mustAdd(t, b, &part{"B's runnable", j, 0})
				ra := runIt(t, a)
				<-a.elected
				rb := runIt(t, b)
				time.Sleep(time.Minute + time.Second)

				ra.cancel()
				cancelled := time.Now()
				err := <-ra.ended
				if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
					t.Errorf("A ended with %v, want %q", err, c.err)
				}
				<-b.elected
				within(t, "B elected", time.Since(cancelled), c.least, c.most)
				if c.stops < c.grace && !j.has("stop A's runnable") {
					t.Error("B leads before A's runnable ended")
				}
				n := 0
				_, writes := board.Record()
				for _, w := range writes {
					if w.HolderIdentity == "" {
						n++
					}
				}
				if n != c.releasesWrites {
					t.Errorf("%d releases written, want %d", n, c.releasesWrites)
				}
				if strings.Contains(logged(), "lost") {
					t.Errorf("a wanted stop was called a loss:\n%s", logged())
				}
				rb.cancel()
				if err := <-rb.ended; err != nil {
					t.Error(err)
				}
				time.Sleep(c.stops)
			})
		})
	}
}

func TestLossEndsTheManagerAndFencesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board, j := &fake.Board{}, &journal{}
		lock := board.Lock("a")
		e := electionOn(t, lock, true)
		l := newLifecycle(logr.Discard(), background, 30*time.Second, e)
		w := &writer{part: &part{"writer", j, 0}, until: time.Now().Add(time.Minute)}
		mustAdd(t, l, w, otherPart{&part{"other", j, 0}})
		r := runIt(t, l)
		<-l.elected
		time.Sleep(20 * time.Second)
		lock.Fail(errors.New("partition"))
		cut := time.Now()
		record, _ := board.Record()
		err := <-r.ended
		if !errors.Is(err, leaderelection.ErrLost) || !strings.HasPrefix(err.Error(), "leader election lost: ") {
			t.Errorf("ended with: %v", err)
		}
		// The writer does not stop: the manager gives it until another may lead.
		within(t, "ended", time.Since(record.RenewTime), 15*time.Second, 15*time.Second+time.Second)
		if time.Since(cut) > 16*time.Second {
			t.Errorf("ended %s after the cut", time.Since(cut))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if last := w.wrote.Sub(record.RenewTime); last > 10*time.Second || w.refused.Before(w.wrote) {
			t.Errorf("last write %s after the last renewal, refused until %s", last, w.refused.Sub(record.RenewTime))
		}
		if !j.has("stop other") {
			t.Error("the other runnable was not stopped")
		}
		if got := lock.Events(); strings.Join(got, ",") != "became leader,stopped leading" {
			t.Errorf("events: %q", got)
		}
	})
}

func TestStandDownAndCampaignAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board, j := &fake.Board{}, &journal{}
		lock := board.Lock("a")
		e := electionOn(t, lock, true)
		e.standDown = true
		l := newLifecycle(logr.Discard(), background, 30*time.Second, e)
		mustAdd(t, l, &part{"leader", j, time.Second}, otherPart{&part{"other", j, 0}}, warmPart{&part{"warm", j, 0}})
		r := runIt(t, l)
		<-l.elected
		for i := range 3 {
			time.Sleep(time.Minute)
			if got := status(t, "lease"); got != 1 {
				t.Errorf("round %d: status %g while leading", i, got)
			}
			lock.Fail(errors.New("partition"))
			time.Sleep(14 * time.Second)
			if j.count("stop leader") != i+1 || j.has("stop other") || j.has("cold warm") {
				t.Errorf("round %d, after the loss:\n%s", i, j)
			}
			if got := status(t, "lease"); got != 0 {
				t.Errorf("round %d: status %g after the loss", i, got)
			}
			lock.Fail(nil)
			time.Sleep(20 * time.Second)
			if j.count("start leader") != i+2 || j.count("start other") != 1 {
				t.Errorf("round %d, after the trouble:\n%s", i, j)
			}
		}
		r.cancel()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		if now, _ := board.Record(); now.HolderIdentity != "" {
			t.Errorf("not released: %+v", now)
		}
	})
}

func TestStandDownGivesUpOnARunnableThatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := (&fake.Board{}).Lock("a")
		e := electionOn(t, lock, true)
		e.standDown = true
		l := newLifecycle(logr.Discard(), background, 5*time.Second, e)
		mustAdd(t, l, &part{"stubborn", &journal{}, time.Hour})
		r := runIt(t, l)
		<-l.elected
		lock.Fail(errors.New("partition"))
		err := <-r.ended
		if !errors.Is(err, leaderelection.ErrLost) || !strings.Contains(err.Error(), "stubborn") {
			t.Errorf("ended with: %v", err)
		}
		time.Sleep(time.Hour)
	})
}

func TestStopInTheMiddleOfStandingDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := (&fake.Board{}).Lock("a")
		e := electionOn(t, lock, true)
		e.standDown = true
		j := &journal{}
		l := newLifecycle(logr.Discard(), background, 30*time.Second, e)
		mustAdd(t, l, &part{"slow", j, 10 * time.Second})
		r := runIt(t, l)
		<-l.elected
		lock.Fail(errors.New("partition"))
		time.Sleep(12 * time.Second)
		r.cancel()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		if j.count("stop slow") != 1 || j.count("start slow") != 1 {
			t.Errorf("journal:\n%s", j)
		}
	})
}

// status reads the gauge of a lease.
func status(t *testing.T, name string) float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(masterStatus)
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "leader_election_master_status" {
		t.Fatalf("%v, %v", families, err)
	}
	for _, m := range families[0].Metric {
		if l := m.Label[0]; l.GetName() == "name" && l.GetValue() == name {
			return m.Gauge.GetValue()
		}
	}
	t.Fatalf("no series for %s", name)
	return 0
}
