// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/metrics"
)

// RESTClientMetric names one of the REST client's metrics that are off unless asked for.
type RESTClientMetric int

// The REST client's metrics that [RegisterRESTClientMetrics] can switch on.
const (
	// MetricRequestLatency is rest_client_request_duration_seconds{verb,host}.
	MetricRequestLatency = iota
	// MetricDNSResolutionLatency is rest_client_dns_resolution_duration_seconds{host}.
	MetricDNSResolutionLatency
	// MetricRequestSize is rest_client_request_size_bytes{verb,host}.
	MetricRequestSize
	// MetricResponseSize is rest_client_response_size_bytes{verb,host}.
	MetricResponseSize
	// MetricRateLimiterLatency is rest_client_rate_limiter_duration_seconds{verb,host}.
	MetricRateLimiterLatency
	// MetricRequestRetry is rest_client_request_retries_total{code,verb,host}.
	MetricRequestRetry
)

// RESTClientMetricsOptions shapes the metrics that are switched on.
type RESTClientMetricsOptions struct {
	// DurationBuckets are the upper bounds, in seconds and rising, of the duration histograms. Nil means twelve from 5 ms to
	// 60 s.
	DurationBuckets []float64
}

const (
	// maxHosts bounds the values of a host label; a host met later shares the label otherLabel.
	maxHosts   = 64
	otherLabel = "other"
	// failedCode is the code of a request that got no answer, as client-go reports it.
	failedCode = "<error>"
)

var requestResult = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "rest_client_requests_total",
	Help: "HTTP requests to API servers, by status code, method and host",
}, []string{"code", "method", "host"})

// The one client metric that is always on is hooked in when the package is linked: client-go has a single place for it, and
// the first to take it keeps it, so a program that wires its own before us is left alone.
func init() {
	Registry.MustRegister(requestResult)
	metrics.Register(metrics.RegisterOpts{RequestResult: resultMetric{newBounds()}})
}

// RegisterRESTClientMetrics switches the named metrics on with their default buckets; unknown ones are ignored, and one that
// is on stays as it is. client-go's hooks are plain variables: call it before any client is made, never beside one in use.
func RegisterRESTClientMetrics(names ...RESTClientMetric) {
	RegisterRESTClientMetricsWithOptions(RESTClientMetricsOptions{}, names...)
}

// RegisterRESTClientMetricsWithOptions is [RegisterRESTClientMetrics] with options.
func RegisterRESTClientMetricsWithOptions(options RESTClientMetricsOptions, names ...RESTClientMetric) {
	if options.DurationBuckets == nil {
		options.DurationBuckets = []float64{.005, .025, .1, .25, .5, 1, 2, 4, 8, 15, 30, 60}
	}
	optional.Lock()
	defer optional.Unlock()
	for _, name := range names {
		if enable := enablers[name]; enable != nil && !optional.on[name] {
			enable(options)
			optional.on[name] = true
		}
	}
}

// optional remembers which metrics are on.
var optional = struct {
	sync.Mutex
	on map[RESTClientMetric]bool
}{on: map[RESTClientMetric]bool{}}

// sizeBuckets run from 64 bytes to 16 MiB.
var sizeBuckets = []float64{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216}

// enablers says for each optional metric how it is made and where client-go calls it.
var enablers = map[RESTClientMetric]func(RESTClientMetricsOptions){
	MetricRequestLatency: func(o RESTClientMetricsOptions) {
		metrics.RequestLatency = newLatency("rest_client_request_duration_seconds", "Seconds from a request to its answer", o)
	},
	MetricRateLimiterLatency: func(o RESTClientMetricsOptions) {
		metrics.RateLimiterLatency = newLatency("rest_client_rate_limiter_duration_seconds", "Seconds a request was held by the client's rate limiter", o)
	},
	MetricDNSResolutionLatency: func(o RESTClientMetricsOptions) {
		h := newHistogram("rest_client_dns_resolution_duration_seconds", "Seconds a host name took to resolve", o.DurationBuckets, "host")
		metrics.ResolverLatency = resolverMetric{newBounds(), h}
	},
	MetricRequestSize: func(RESTClientMetricsOptions) {
		metrics.RequestSize = newSize("rest_client_request_size_bytes", "Bytes of request bodies")
	},
	MetricResponseSize: func(RESTClientMetricsOptions) {
		metrics.ResponseSize = newSize("rest_client_response_size_bytes", "Bytes of response bodies")
	},
	MetricRequestRetry: func(RESTClientMetricsOptions) {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_request_retries_total",
			Help: "Requests sent again by the client, by status code, verb and host",
		}, []string{"code", "verb", "host"})
		Registry.MustRegister(c)
		metrics.RequestRetry = retryMetric{newBounds(), c}
	},
}

func newHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	Registry.MustRegister(h)
	return h
}

func newLatency(name, help string, o RESTClientMetricsOptions) latencyMetric {
	return latencyMetric{newBounds(), newHistogram(name, help, o.DurationBuckets, "verb", "host")}
}

func newSize(name, help string) sizeMetric {
	return sizeMetric{newBounds(), newHistogram(name, help, sizeBuckets, "verb", "host")}
}

type resultMetric struct{ *bounds }

func (m resultMetric) Increment(_ context.Context, code, method, host string) {
	requestResult.WithLabelValues(m.code(code), m.verb(method), m.host(host)).Inc()
}

type latencyMetric struct {
	*bounds
	vec *prometheus.HistogramVec
}

func (m latencyMetric) Observe(_ context.Context, verb string, u url.URL, d time.Duration) {
	m.vec.WithLabelValues(m.verb(verb), m.host(u.Host)).Observe(d.Seconds())
}

type resolverMetric struct {
	*bounds
	vec *prometheus.HistogramVec
}

func (m resolverMetric) Observe(_ context.Context, host string, d time.Duration) {
	m.vec.WithLabelValues(m.host(host)).Observe(d.Seconds())
}

type sizeMetric struct {
	*bounds
	vec *prometheus.HistogramVec
}

func (m sizeMetric) Observe(_ context.Context, verb, host string, size float64) {
	m.vec.WithLabelValues(m.verb(verb), m.host(host)).Observe(size)
}

type retryMetric struct {
	*bounds
	vec *prometheus.CounterVec
}

func (m retryMetric) IncrementRetry(_ context.Context, code, method, host string) {
	m.vec.WithLabelValues(m.code(code), m.verb(method), m.host(host)).Inc()
}

// bounds keeps the label values of one metric few, whatever a server or a user's transport comes up with.
type bounds struct {
	mu    sync.RWMutex
	hosts map[string]bool // at most maxHosts
}

func newBounds() *bounds { return &bounds{hosts: map[string]bool{}} }

func (b *bounds) host(host string) string {
	b.mu.RLock()
	known, full := b.hosts[host], len(b.hosts) >= maxHosts
	b.mu.RUnlock()
	switch {
	case known:
		return host
	case full:
		return otherLabel
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.hosts) >= maxHosts && !b.hosts[host] {
		return otherLabel
	}
	b.hosts[host] = true
	return host
}

// verb passes the methods of HTTP that an API server knows.
func (*bounds) verb(verb string) string {
	switch verb {
	case "GET", "PUT", "POST", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT":
		return verb
	}
	return otherLabel
}

// code passes the three digits of an HTTP status and client-go's mark for no answer.
func (*bounds) code(code string) string {
	if len(code) == 3 && code[0] >= '1' && code[0] <= '5' && isDigit(code[1]) && isDigit(code[2]) || code == failedCode {
		return code
	}
	return otherLabel
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
