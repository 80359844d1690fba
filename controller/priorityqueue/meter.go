// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/manager/metrics"
)

// gauge counts up and down.
type gauge = workqueue.GaugeMetric

// meter is a queue's metrics, each resolved once. A queue without a name has
// metrics that do nothing, so that nobody has to ask.
type meter struct {
	depth               func(priority int) gauge
	adds, retries       workqueue.CounterMetric
	latency, work       workqueue.HistogramMetric
	unfinished, longest workqueue.SettableGaugeMetric
}

// byPriority is a provider that counts each priority apart.
type byPriority interface {
	NewDepthMetricWithPriority(name string) metrics.DepthMetricWithPriority
}

// resolved is a depth metric that gives out the gauge of a priority: counting in
// it looks nothing up.
type resolved interface {
	Of(priority int) workqueue.GaugeMetric
}

func newMeter(name string, p workqueue.MetricsProvider) *meter {
	if name == "" {
		none := silent{}
		return &meter{depth: func(int) gauge { return none }, adds: none, retries: none, latency: none, work: none}
	}
	m := &meter{
		adds:       p.NewAddsMetric(name),
		retries:    p.NewRetriesMetric(name),
		latency:    p.NewLatencyMetric(name),
		work:       p.NewWorkDurationMetric(name),
		unfinished: p.NewUnfinishedWorkSecondsMetric(name),
		longest:    p.NewLongestRunningProcessorSecondsMetric(name),
	}
	if bp, ok := p.(byPriority); ok {
		all := bp.NewDepthMetricWithPriority(name)
		if r, ok := all.(resolved); ok {
			m.depth = r.Of
			return m
		}
		m.depth = func(priority int) gauge { return oneDepth{all, priority} }
		return m
	}
	all := p.NewDepthMetric(name)
	m.depth = func(int) gauge { return all }
	return m
}

// shows tells whether the metrics of running work are wanted.
func (m *meter) shows() bool { return m.unfinished != nil && m.longest != nil }

// oneDepth is one priority's share of a depth metric.
type oneDepth struct {
	all      metrics.DepthMetricWithPriority
	priority int
}

func (d oneDepth) Inc() { d.all.Inc(d.priority) }
func (d oneDepth) Dec() { d.all.Dec(d.priority) }

// silent is every metric of a queue without a name.
type silent struct{}

func (silent) Inc()            {}
func (silent) Dec()            {}
func (silent) Observe(float64) {}
