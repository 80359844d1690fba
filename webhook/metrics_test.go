// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/wherry-dev/wherry/manager/metrics"
	_ "github.com/wherry-dev/wherry/webhook/conversion"
)

// What differs from run to run: how long requests took, and how often other tests read certificates.
var varying = regexp.MustCompile(`(?m)^((?:controller_runtime_webhook_latency_seconds_(?:sum|bucket)|certwatcher_)\S*) .*$`)

// goldenRuns counts the runs of TestMetricNames.
var goldenRuns atomic.Int64

// TestMetricNames holds names, types, labels and buckets to what dashboards know.
func TestMetricNames(t *testing.T) {
	path := fmt.Sprintf("/golden-%d", goldenRuns.Add(1)) // what a run before has counted stays
	s := NewServer(Options{})
	s.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery != "" {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	}))
	for _, query := range []string{"", "", "?x"} {
		s.WebhookMux().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path+query, nil))
	}
	rec := httptest.NewRecorder()
	promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var lines []string
	for line := range strings.Lines(rec.Body.String()) {
		ours := strings.Contains(line, "webhook") || strings.Contains(line, "certwatcher")
		other := strings.Contains(line, "webhook=") && !strings.Contains(line, `"`+path+`"`)
		if ours && !other && !strings.HasPrefix(line, "# HELP") {
			lines = append(lines, strings.Replace(line, path, "/golden", 1))
		}
	}
	got := varying.ReplaceAllString(strings.Join(lines, ""), "$1 VARIES")
	file := filepath.Join("testdata", "metrics.txt")
	if os.Getenv("GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
