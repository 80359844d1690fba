// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/wherry-dev/wherry/manager/leaderelection"
	"github.com/wherry-dev/wherry/manager/metrics"
)

// releaseTimeout bounds how long giving the lease up may hold the end of the process.
const releaseTimeout = 5 * time.Second

var masterStatus = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "leader_election_master_status",
	Help: "1 while this process leads by the lease of that name, 0 while it does not",
}, []string{"name"})

// Registered when linked, as the other metrics are: a dashboard finds them before the first election.
func init() { metrics.Registry.MustRegister(masterStatus) }

// election is a manager's part in leader election: it campaigns, runs the last stage while it leads, and fences its writes.
type election struct {
	name      string // of the lease, for the metric
	log       logr.Logger
	elector   *leaderelection.Elector
	timing    leaderelection.Timing
	fence     *leaderelection.Fence
	release   bool // give the lease up at the end
	standDown bool // campaign again after a loss, instead of ending the process

	hold  context.CancelFunc   // ends the holding of the lease; nil before begin
	ended chan struct{}        // closed when the goroutine of begin returned
	term  *leaderelection.Term // the last one; owned by that goroutine until ended is closed
	lost  bool                 // the last one was lost; likewise
}

// newElection checks the timing.
func newElection(name string, lock leaderelection.Lock, timing leaderelection.Timing, log logr.Logger) (*election, error) {
	elector, err := leaderelection.NewElector(lock, timing, log)
	if err != nil {
		return nil, err
	}
	return &election{name: name, log: log, elector: elector, timing: timing, fence: &leaderelection.Fence{}}, nil
}

// begin starts to campaign and to lead, in a goroutine that end waits for. run ends when the manager is to stop.
func (e *election) begin(run context.Context, l *lifecycle, base context.Context) {
	// The lease is held beyond run: until the last runnable has stopped.
	hold, cancel := context.WithCancel(context.WithoutCancel(run))
	e.hold, e.ended = cancel, make(chan struct{})
	masterStatus.WithLabelValues(e.name).Set(0)
	go func() {
		defer close(e.ended)
		for e.lead(run, hold, l, base) {
		}
	}()
}

// lead lives through one campaign and one term, and says whether there is to be another.
func (e *election) lead(run, hold context.Context, l *lifecycle, base context.Context) (again bool) {
	term, err := e.elector.Campaign(run)
	if err != nil {
		return false // run ended
	}
	e.term, e.lost = term, false
	if !e.standDown {
		e.fence.Guard(term)
	}
	masterStatus.WithLabelValues(e.name).Set(1)
	defer masterStatus.WithLabelValues(e.name).Set(0)
	select {
	case <-l.elected:
	default:
		close(l.elected)
	}
	elected := l.groups[stageElected]
	if elected.start(leaderelection.NewContext(base, term), run) != nil {
		return false // closed meanwhile: the manager stops
	}
	err = e.elector.Hold(hold, term)
	if err == nil {
		return false
	}
	e.lost = true
	if !e.standDown {
		l.fail(err)
		return false
	}
	l.log.Info("leadership lost, standing down", "error", err.Error())
	elected.halt()
	limit, done := withGrace(l.grace)
	defer done()
	if late := elected.wait(limit); len(late) > 0 {
		l.fail(fmt.Errorf("manager: cannot campaign again, not stopped within %s after the loss of leadership: %s: %w",
			l.grace, strings.Join(late, ", "), err))
		return false
	}
	return run.Err() == nil
}

// end ends the last term, and gives the lease up if that is wanted and safe: stopped says that no elected runnable is left.
// One that is left might write by a client of its own, which no fence stands before; then others wait for the lease to
// expire, as they would if the process had been killed.
func (e *election) end(stopped bool) {
	if e == nil || e.hold == nil {
		return // no election, or none begun
	}
	e.hold()
	<-e.ended
	if e.term == nil {
		return
	}
	underWay := e.term.End()
	if !e.release || e.lost || !stopped || underWay > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := e.elector.Release(ctx); err != nil {
		e.log.Error(err, "lease not released")
	}
}
