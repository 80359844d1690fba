// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/wherry-dev/wherry/controller/fault"
	"github.com/wherry-dev/wherry/controller/priorityqueue"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/manager/metrics"
)

var update = flag.Bool("update", false, "write the metrics as they are into testdata; a change of a line breaks somebody's dashboard")

// TestMetricsGolden holds every metric of controllers and queues to its name,
// type, labels and buckets: dashboards and alerts are written against them.
func TestMetricsGolden(t *testing.T) {
	const name = "golden"
	m := metricsFor(name)
	m.timedOut()
	m.result(resultConflict).Inc()
	m.duration.Observe(1)
	q := priorityqueue.New[reconcile.Request](name)
	low := -100
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, request("low"))
	q.Add(request("p"))
	q.AddRateLimited(request("q"))
	key, _ := q.Get()
	q.Done(key)
	defer q.ShutDown()
	fault.NewKeeper(name, logr.Discard()).Note(fault.Predicate, "p", errors.New("boom"))

	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, f := range families {
		for _, series := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range series.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["controller"] != name {
				continue
			}
			line := fmt.Sprintf("%s %s {%s}", f.GetName(), strings.ToLower(f.GetType().String()), pairs(labels))
			if h := series.GetHistogram(); h != nil {
				line += " buckets"
				for _, b := range h.GetBucket() {
					line += fmt.Sprintf(" %.4g", b.GetUpperBound())
				}
				line += fmt.Sprintf("; native, schema %d", h.GetSchema())
			}
			got.WriteString(line + "\n")
		}
	}
	const file = "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the metrics are\n%s\nwant\n%s", got.String(), want)
	}
}

// pairs shows labels in the order of their names.
func pairs(labels map[string]string) string {
	var all []string
	for _, l := range slices.Sorted(maps.Keys(labels)) {
		all = append(all, l+"="+labels[l])
	}
	return strings.Join(all, ",")
}

// TestZeroAtStart wants the counters of results to be there before anything
// happened, and those of rare things not.
func TestZeroAtStart(t *testing.T) {
	metricsFor("zero")
	results := gather(t, "controller_runtime_reconcile_total", "zero", "result")
	slices.Sort(results)
	if want := []string{"error", "requeue", "requeue_after", "success"}; !slices.Equal(results, want) {
		t.Errorf("the results at start are %q, want %q", results, want)
	}
	for _, name := range []string{"reconcile_errors_total", "terminal_reconcile_errors_total", "reconcile_panics_total"} {
		if len(gather(t, "controller_runtime_"+name, "zero", "controller")) != 1 {
			t.Errorf("%s does not start at zero", name)
		}
	}
	if len(gather(t, "controller_runtime_reconcile_timeouts_total", "zero", "controller")) != 0 {
		t.Error("timeouts are counted before there is one")
	}
}

// gather lists the values of a label in the series of one controller.
func gather(t *testing.T, metric, controller, label string) (values []string) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != metric {
			continue
		}
		for _, series := range f.GetMetric() {
			var of, value string
			for _, l := range series.GetLabel() {
				switch l.GetName() {
				case "controller":
					of = l.GetValue()
				case label:
					value = l.GetValue()
				}
				if l.GetName() == "controller" && label == "controller" {
					value = l.GetValue()
				}
			}
			if of == controller {
				values = append(values, value)
			}
		}
	}
	return values
}
