// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	clientmetrics "k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/manager/metrics"
)

// family gathers the family of that name; nil if there is none.
func family(t *testing.T, name string) *dto.MetricFamily {
	t.Helper()
	all, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			return f
		}
	}
	return nil
}

// shape is a family as the golden tables spell it: type, labels, number of buckets.
func shape(f *dto.MetricFamily) string {
	if f == nil {
		return "none"
	}
	var labels []string
	for _, l := range f.Metric[0].Label {
		labels = append(labels, l.GetName())
	}
	slices.Sort(labels)
	s := fmt.Sprintf("%s{%s}", strings.ToLower(f.GetType().String()), strings.Join(labels, ","))
	if h := f.Metric[0].Histogram; h != nil {
		s += fmt.Sprintf(" %d buckets %g..%g", len(h.Bucket), h.Bucket[0].GetUpperBound(), h.Bucket[len(h.Bucket)-1].GetUpperBound())
		if h.Schema != nil {
			s += " native"
		}
	}
	return s
}

func TestWorkqueueMetricNames(t *testing.T) {
	p := metrics.WorkqueueMetricsProvider{}
	p.NewDepthMetric("golden").Inc()
	p.NewAddsMetric("golden").Inc()
	p.NewRetriesMetric("golden").Inc()
	p.NewLatencyMetric("golden").Observe(.1)
	p.NewWorkDurationMetric("golden").Observe(.1)
	p.NewUnfinishedWorkSecondsMetric("golden").Set(1)
	p.NewLongestRunningProcessorSecondsMetric("golden").Set(1)
	for name, want := range map[string]string{
		"workqueue_depth":                             "gauge{controller,name,priority}",
		"workqueue_adds_total":                        "counter{controller,name}",
		"workqueue_retries_total":                     "counter{controller,name}",
		"workqueue_queue_duration_seconds":            "histogram{controller,name} 12 buckets 1e-08..1000 native",
		"workqueue_work_duration_seconds":             "histogram{controller,name} 12 buckets 1e-08..1000 native",
		"workqueue_unfinished_work_seconds":           "gauge{controller,name}",
		"workqueue_longest_running_processor_seconds": "gauge{controller,name}",
	} {
		if got := shape(family(t, name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if family(t, "go_goroutines") == nil {
		t.Error("no go_goroutines: the runtime's collector is missing")
	}
}

// Slip of upstream: past the cap, decrements went to another series than the increments before it.
func TestDepthReturnsToZeroPastTheCap(t *testing.T) {
	d := metrics.WorkqueueMetricsProvider{}.NewDepthMetricWithPriority("capped")
	for p := range 40 {
		d.Inc(p)
	}
	series := func() (n int, sum float64, rest float64) {
		for _, m := range family(t, "workqueue_depth").Metric {
			l := map[string]string{}
			for _, p := range m.Label {
				l[p.GetName()] = p.GetValue()
			}
			if l["name"] != "capped" {
				continue
			}
			n++
			sum += m.Gauge.GetValue()
			if l["priority"] == "exceeded_cardinality_limit" {
				rest = m.Gauge.GetValue()
			}
			if v := m.Gauge.GetValue(); v < 0 {
				t.Errorf("depth of priority %s is %g", l["priority"], v)
			}
		}
		return n, sum, rest
	}
	if n, sum, rest := series(); n != 26 || sum != 40 || rest != 15 {
		t.Errorf("%d series, sum %g, shared %g; want 26, 40, 15", n, sum, rest)
	}
	of, ok := d.(interface {
		Of(priority int) workqueue.GaugeMetric
	})
	if !ok {
		t.Fatal("the depth gives no gauge of a priority")
	}
	for p := range 40 {
		of.Of(p).Dec()
	}
	if _, sum, rest := series(); sum != 0 || rest != 0 {
		t.Errorf("after all left: sum %g, shared %g", sum, rest)
	}
}

// switchedOn says that a run of the test before has switched the optional metrics on, for good.
var switchedOn bool

func TestRESTClientMetrics(t *testing.T) {
	ctx := context.Background()
	clientmetrics.RequestResult.Increment(ctx, "200", "GET", "h")
	clientmetrics.RequestResult.Increment(ctx, "<error>", "GET", "h")
	if got, want := shape(family(t, "rest_client_requests_total")), "counter{code,host,method}"; got != want {
		t.Errorf("requests: %s, want %s", got, want)
	}
	if got := shape(family(t, "rest_client_request_duration_seconds")); got != "none" && !switchedOn {
		t.Errorf("durations are there unasked: %s", got)
	}
	switchedOn = true

	all := []metrics.RESTClientMetric{
		metrics.MetricRequestLatency, metrics.MetricDNSResolutionLatency, metrics.MetricRequestSize,
		metrics.MetricResponseSize, metrics.MetricRateLimiterLatency, metrics.MetricRequestRetry,
	}
	metrics.RegisterRESTClientMetricsWithOptions(metrics.RESTClientMetricsOptions{DurationBuckets: []float64{1, 2}}, all[0])
	metrics.RegisterRESTClientMetrics(append(all, 99)...)
	u := url.URL{Host: "h"}
	clientmetrics.RequestLatency.Observe(ctx, "GET", u, time.Second)
	clientmetrics.ResolverLatency.Observe(ctx, "h", time.Second)
	clientmetrics.RequestSize.Observe(ctx, "GET", "h", 1)
	clientmetrics.ResponseSize.Observe(ctx, "GET", "h", 1)
	clientmetrics.RateLimiterLatency.Observe(ctx, "GET", u, time.Second)
	clientmetrics.RequestRetry.IncrementRetry(ctx, "503", "GET", "h")
	for name, want := range map[string]string{
		"rest_client_request_duration_seconds":        "histogram{host,verb} 2 buckets 1..2",
		"rest_client_rate_limiter_duration_seconds":   "histogram{host,verb} 12 buckets 0.005..60",
		"rest_client_dns_resolution_duration_seconds": "histogram{host} 12 buckets 0.005..60",
		"rest_client_request_size_bytes":              "histogram{host,verb} 11 buckets 64..1.6777216e+07",
		"rest_client_response_size_bytes":             "histogram{host,verb} 11 buckets 64..1.6777216e+07",
		"rest_client_request_retries_total":           "counter{code,host,verb}",
	} {
		if got := shape(family(t, name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestRESTClientLabelsAreBounded(t *testing.T) {
	ctx := context.Background()
	for i := range 500 {
		clientmetrics.RequestResult.Increment(ctx, fmt.Sprint(i), fmt.Sprint("VERB", i), fmt.Sprint("host", i))
	}
	values := map[string]map[string]bool{}
	for _, m := range family(t, "rest_client_requests_total").Metric {
		for _, l := range m.Label {
			if values[l.GetName()] == nil {
				values[l.GetName()] = map[string]bool{}
			}
			values[l.GetName()][l.GetValue()] = true
		}
	}
	if n := len(values["host"]); n > 65 {
		t.Errorf("%d hosts", n)
	}
	if v := values["method"]; len(v) > 2 || !v["other"] {
		t.Errorf("methods: %v", v)
	}
	if v := values["code"]; v["99"] || !v["200"] || !v["other"] {
		t.Errorf("codes: %v", v)
	}
}

func Example() {
	failures := prometheus.NewCounter(prometheus.CounterOpts{Name: "widget_failures_total", Help: "Widgets that failed"})
	fmt.Println(metrics.Registry.Register(failures))
	// Output: <nil>
}
