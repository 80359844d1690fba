// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wherry-dev/wherry/manager/metrics"
)

// reconcileBuckets are the upper bounds of the duration histogram, in seconds.
var reconcileBuckets = []float64{
	0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5,
	0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5,
	5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
}

// vectors are the metrics of all controllers.
type vectors struct {
	results                                    *prometheus.CounterVec
	errors, terminal, panics, timeouts         *prometheus.CounterVec
	duration                                   *prometheus.HistogramVec
	maxConcurrentReconciles, activeReconcilers *prometheus.GaugeVec
}

// allMetrics registers the metrics when the first controller is made, so that
// importing this package has no effect.
var allMetrics = sync.OnceValue(func() *vectors {
	const prefix = "controller_runtime_"
	byController := []string{"controller"}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, append(byController, labels...))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, byController)
	}
	v := &vectors{
		results:  counter("reconcile_total", "Reconciles by controller and by what they ended in.", "result"),
		errors:   counter("reconcile_errors_total", "Reconciles that ended in an error, by controller."),
		terminal: counter("terminal_reconcile_errors_total", "Reconciles that ended in an error which is not tried again, by controller."),
		panics:   counter("reconcile_panics_total", "Reconciles that panicked, by controller."),
		timeouts: counter("reconcile_timeouts_total", "Reconciles that ran into the reconciliation timeout, by controller."),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "reconcile_time_seconds", Help: "How long reconciles took, by controller.",
			Buckets:                         reconcileBuckets,
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}, byController),
		maxConcurrentReconciles: gauge("max_concurrent_reconciles", "Workers by controller."),
		activeReconcilers:       gauge("active_workers", "Workers that are reconciling now, by controller."),
	}
	metrics.Registry.MustRegister(v.results, v.errors, v.terminal, v.panics, v.timeouts, v.duration,
		v.maxConcurrentReconciles, v.activeReconcilers)
	return v
})

// meter is one controller's metrics, each resolved once.
type meter struct {
	name                     string
	errors, terminal, panics prometheus.Counter
	duration                 prometheus.Observer
	workers, active          prometheus.Gauge

	mu      sync.RWMutex
	results map[string]prometheus.Counter
}

// metricsFor makes a controller's metrics. All that count something start at
// zero; timeouts are counted only by those who have any.
func metricsFor(name string) *meter {
	v := allMetrics()
	m := &meter{
		name:     name,
		errors:   v.errors.WithLabelValues(name),
		terminal: v.terminal.WithLabelValues(name),
		panics:   v.panics.WithLabelValues(name),
		duration: v.duration.WithLabelValues(name),
		workers:  v.maxConcurrentReconciles.WithLabelValues(name),
		active:   v.activeReconcilers.WithLabelValues(name),
		results:  map[string]prometheus.Counter{},
	}
	for _, r := range []string{resultSuccess, resultError, resultRequeue, resultRequeueAfter} {
		m.result(r)
	}
	return m
}

// result is the counter of one value of the label "result".
func (m *meter) result(value string) prometheus.Counter {
	m.mu.RLock()
	c := m.results[value]
	m.mu.RUnlock()
	if c != nil {
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c = allMetrics().results.WithLabelValues(m.name, value)
	m.results[value] = c
	return c
}

func (m *meter) timedOut() { allMetrics().timeouts.WithLabelValues(m.name).Inc() }
