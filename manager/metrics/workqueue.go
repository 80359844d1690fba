// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// The names of a work queue's metrics: each is exported as WorkQueueSubsystem + "_" + key.
const (
	WorkQueueSubsystem         = "workqueue"
	DepthKey                   = "depth"
	AddsKey                    = "adds_total"
	QueueLatencyKey            = "queue_duration_seconds"
	WorkDurationKey            = "work_duration_seconds"
	UnfinishedWorkKey          = "unfinished_work_seconds"
	LongestRunningProcessorKey = "longest_running_processor_seconds"
	RetriesKey                 = "retries_total"
)

const (
	// maxPriorities bounds the values of the priority label of one queue's depth.
	maxPriorities = 25
	// manyPriorities is the label of every priority met after maxPriorities others.
	manyPriorities = "exceeded_cardinality_limit"
)

var queueVecs = struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}{
	depth:      queueGauge(DepthKey, "Items waiting in the queue, by priority", "name", "controller", "priority"),
	unfinished: queueGauge(UnfinishedWorkKey, "Age in seconds, summed, of the items being worked on now", "name", "controller"),
	longest:    queueGauge(LongestRunningProcessorKey, "Age in seconds of the item longest worked on now", "name", "controller"),
	adds:       queueCounter(AddsKey, "Items added to the queue"),
	retries:    queueCounter(RetriesKey, "Items added to the queue with a delay"),
	latency:    queueHistogram(QueueLatencyKey, "Seconds an item waited in the queue"),
	work:       queueHistogram(WorkDurationKey, "Seconds the work on an item took"),
}

// Every named queue of the process is measured, also one that a user makes with client-go alone: that is what users of
// upstream find on their dashboards. client-go takes the first provider it is given.
func init() {
	v := queueVecs
	Registry.MustRegister(v.depth, v.unfinished, v.longest, v.adds, v.retries, v.latency, v.work)
	workqueue.SetProvider(WorkqueueMetricsProvider{})
}

func queueGauge(key, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Subsystem: WorkQueueSubsystem, Name: key, Help: help}, labels)
}

func queueCounter(key, help string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: WorkQueueSubsystem, Name: key, Help: help}, []string{"name", "controller"})
}

func queueHistogram(key, help string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Subsystem: WorkQueueSubsystem, Name: key, Help: help,
		Buckets:                         prometheus.ExponentialBuckets(10e-9, 10, 12),
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"name", "controller"})
}

// WorkqueueMetricsProvider makes the metrics of a queue from its name, in [Registry]. The zero value is ready.
// Each method resolves its series once, so a queue that keeps what it got pays no look-up per item.
type WorkqueueMetricsProvider struct{}

var _ workqueue.MetricsProvider = WorkqueueMetricsProvider{}

// DepthMetricWithPriority counts the waiting items of a queue, each under its priority. Safe for concurrent use.
type DepthMetricWithPriority interface {
	Inc(priority int)
	Dec(priority int)
}

// NewDepthMetric is the depth of a queue without priorities: its priority label is empty.
func (WorkqueueMetricsProvider) NewDepthMetric(name string) workqueue.GaugeMetric {
	return queueVecs.depth.WithLabelValues(name, name, "")
}

// NewDepthMetricWithPriority is the depth of a queue with priorities. The first 25 priorities it meets have series of
// their own; the others share one.
func (WorkqueueMetricsProvider) NewDepthMetricWithPriority(name string) DepthMetricWithPriority {
	return &priorityDepth{name: name, gauges: map[int]prometheus.Gauge{}}
}

// NewAddsMetric counts items added.
func (WorkqueueMetricsProvider) NewAddsMetric(name string) workqueue.CounterMetric {
	return queueVecs.adds.WithLabelValues(name, name)
}

// NewLatencyMetric measures how long items wait, in seconds.
func (WorkqueueMetricsProvider) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return queueVecs.latency.WithLabelValues(name, name)
}

// NewWorkDurationMetric measures how long work on an item takes, in seconds.
func (WorkqueueMetricsProvider) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return queueVecs.work.WithLabelValues(name, name)
}

// NewUnfinishedWorkSecondsMetric is the summed age of the items in work, in seconds.
func (WorkqueueMetricsProvider) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return queueVecs.unfinished.WithLabelValues(name, name)
}

// NewLongestRunningProcessorSecondsMetric is the age of the item longest in work, in seconds.
func (WorkqueueMetricsProvider) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return queueVecs.longest.WithLabelValues(name, name)
}

// NewRetriesMetric counts items added with a delay.
func (WorkqueueMetricsProvider) NewRetriesMetric(name string) workqueue.CounterMetric {
	return queueVecs.retries.WithLabelValues(name, name)
}

// priorityDepth gives each priority one series for good. Were the choice made anew per call, an item counted before the
// limit was reached would be discounted from the shared series after it, and neither would come back to zero.
type priorityDepth struct {
	name string

	mu     sync.RWMutex
	gauges map[int]prometheus.Gauge // by priority; at most maxPriorities
	rest   prometheus.Gauge         // guarded by mu; nil until needed
}

func (d *priorityDepth) Inc(priority int) { d.gauge(priority).Inc() }
func (d *priorityDepth) Dec(priority int) { d.gauge(priority).Dec() }

// Of is the series that Inc and Dec of a priority count in, for those who do so often.
func (d *priorityDepth) Of(priority int) workqueue.GaugeMetric { return d.gauge(priority) }

func (d *priorityDepth) gauge(priority int) prometheus.Gauge {
	d.mu.RLock()
	g := d.gauges[priority]
	if g == nil {
		g = d.rest
	}
	d.mu.RUnlock()
	if g != nil {
		return g
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.gauges[priority]; g != nil {
		return g
	}
	if len(d.gauges) < maxPriorities {
		g := queueVecs.depth.WithLabelValues(d.name, d.name, strconv.Itoa(priority))
		d.gauges[priority] = g
		return g
	}
	if d.rest == nil {
		d.rest = queueVecs.depth.WithLabelValues(d.name, d.name, manyPriorities)
	}
	return d.rest
}
