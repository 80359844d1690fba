// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wherry-dev/wherry/manager/metrics"
)

// golden are the metrics of a program with a manager, and their labels. Dashboards name them: a line may be added, never
// changed or removed.
var golden = map[string]string{
	"certwatcher_read_certificate_errors_total":     "",
	"certwatcher_read_certificate_total":            "",
	"controller_runtime_webhook_latency_seconds":    "webhook",
	"controller_runtime_webhook_requests_in_flight": "webhook",
	"controller_runtime_webhook_requests_total":     "webhook,code",
	"leader_election_master_status":                 "name",
	"rest_client_requests_total":                    "code,method,host",
	"workqueue_adds_total":                          "name,controller",
	"workqueue_depth":                               "name,controller,priority",
	"workqueue_longest_running_processor_seconds":   "name,controller",
	"workqueue_queue_duration_seconds":              "name,controller",
	"workqueue_retries_total":                       "name,controller",
	"workqueue_unfinished_work_seconds":             "name,controller",
	"workqueue_work_duration_seconds":               "name,controller",
}

// elsewhere are metrics of packages that a manager may link or not.
var elsewhere = map[string]string{
	"controller_runtime_conversion_webhook_panics_total": "",
	"controller_runtime_webhook_panics_total":            "",
}

var description = regexp.MustCompile(`fqName: "([^"]*)".*variableLabels: \{([^}]*)\}`)

func TestMetricNames(t *testing.T) {
	registered := make(chan *prometheus.Desc)
	go func() {
		defer close(registered)
		metrics.Registry.(*prometheus.Registry).Describe(registered)
	}()
	got := map[string]string{}
	for d := range registered {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		got[m[1]] = m[2]
	}
	for _, name := range slices.Sorted(maps.Keys(golden)) {
		if labels, there := got[name]; !there || labels != golden[name] {
			t.Errorf("%s has the labels %q (registered: %v), want %q", name, labels, there, golden[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if labels, known := elsewhere[name]; known && labels == got[name] {
			continue
		}
		// Metrics that upstream does not have are the business of the floor that adds them.
		if _, known := golden[name]; !known && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") && !strings.HasPrefix(name, "wherry_") {
			t.Errorf("%s{%s} is not in the golden table: add it if it is meant to stay", name, got[name])
		}
	}
	if got["go_goroutines"] != "" || len(got) < len(golden)+20 {
		t.Error("the collectors of runtime and process are missing")
	}
}
