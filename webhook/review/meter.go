// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wherry-dev/wherry/manager/metrics"
)

var vecs = struct {
	latency  *prometheus.HistogramVec
	total    *prometheus.CounterVec
	inFlight *prometheus.GaugeVec
}{
	latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:                            "controller_runtime_webhook_latency_seconds",
		Help:                            "Seconds that the answer to a webhook request took",
		Buckets:                         prometheus.ExponentialBuckets(10e-9, 10, 12),
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}, []string{"webhook"}),
	total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "controller_runtime_webhook_requests_total",
		Help: "Webhook requests answered, by HTTP status code",
	}, []string{"webhook", "code"}),
	inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "controller_runtime_webhook_requests_in_flight",
		Help: "Webhook requests being answered now",
	}, []string{"webhook"}),
}

// The metrics endpoint shows these names from the start of the process, as dashboards expect.
func init() { metrics.Registry.MustRegister(vecs.latency, vecs.total, vecs.inFlight) }

// Metered returns handler with each request counted under the label webhook=path. Two handlers with one path share a count.
func Metered(path string, handler http.Handler) http.Handler {
	m := &meter{
		handler:  handler,
		path:     path,
		latency:  vecs.latency.WithLabelValues(path),
		inFlight: vecs.inFlight.WithLabelValues(path),
		ok:       vecs.total.WithLabelValues(path, "200"),
	}
	vecs.total.WithLabelValues(path, "500")
	return m
}

// meter resolves its series once, so that a request pays no look-up.
type meter struct {
	handler  http.Handler
	path     string
	latency  prometheus.Observer
	inFlight prometheus.Gauge
	ok       prometheus.Counter
}

func (m *meter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	begun := time.Now()
	m.inFlight.Inc()
	seen := &statusWriter{ResponseWriter: w}
	// Deferred, since a handler that panics is a request as well: net/http cuts the connection then.
	returned := false
	defer func() {
		m.inFlight.Dec()
		m.latency.Observe(time.Since(begun).Seconds())
		m.count(seen.status, returned)
	}()
	m.handler.ServeHTTP(seen, req)
	returned = true
}

func (m *meter) count(status int, returned bool) {
	switch {
	case status == 0 && !returned:
		status = http.StatusInternalServerError
	case status == 0:
		status = http.StatusOK
	}
	if status == http.StatusOK {
		m.ok.Inc()
		return
	}
	vecs.total.WithLabelValues(m.path, strconv.Itoa(status)).Inc()
}

// statusWriter remembers the first final status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController through, for profiles and others that stream.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
