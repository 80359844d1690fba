// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package review_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	dto "github.com/prometheus/client_model/go"

	"github.com/wherry-dev/wherry/manager/metrics"
	"github.com/wherry-dev/wherry/webhook/review"
)

// unsized is a body whose length is not told.
type unsized struct{ *strings.Reader }

func TestReadGivesTheWholeBody(t *testing.T) {
	for _, size := range []int{1, 4 << 10, 4<<10 + 1, 1 << 20, 1<<20 + 1, 3 << 20} {
		text := strings.Repeat("x", size)
		told := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text))
		untold := httptest.NewRequest(http.MethodPost, "/", unsized{strings.NewReader(text)})
		short := httptest.NewRequest(http.MethodPost, "/", unsized{strings.NewReader(text)})
		short.ContentLength = 1
		for name, req := range map[string]*http.Request{"told": told, "untold": untold, "told wrong": short} {
			req.Header.Set("Content-Type", "application/json; charset=utf-8")
			req.Header.Set("Content-Encoding", "Identity")
			body, err := review.Read(httptest.NewRecorder(), req, 3<<20)
			if err != nil || string(body) != text {
				t.Errorf("%s, %d bytes: got %d, %v", name, size, len(body), err)
			}
		}
	}
}

func TestLimitIsExact(t *testing.T) {
	for size, code := range map[int]int{10: 0, 11: 413} {
		req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", size)))
		req.Header.Set("Content-Type", "application/json")
		_, err := review.Read(httptest.NewRecorder(), req, 10)
		if (err != nil) != (code != 0) || err != nil && review.CodeOf(err) != code {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if review.CodeOf(fmt.Errorf("any")) != 400 {
		t.Error("an error that is none of ours is the caller's fault")
	}
}

func TestWriteOfNoJSON(t *testing.T) {
	rec := httptest.NewRecorder()
	review.Write(rec, logr.Discard(), 200, func() {})
	if rec.Code != 500 {
		t.Errorf("got %d", rec.Code)
	}
}

// meteredRuns counts the runs of TestMetered.
var meteredRuns atomic.Int64

func TestMetered(t *testing.T) {
	path := fmt.Sprintf("/m%d", meteredRuns.Add(1)) // what a run before has counted stays
	h := review.Metered(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "early":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusConflict)
		case "write":
			w.Write([]byte("x"))
			w.WriteHeader(http.StatusConflict) // too late
		case "panic":
			panic("p")
		case "flush":
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	}))
	for _, query := range []string{"", "early", "write", "panic", "flush"} {
		func() {
			defer func() { _ = recover() }()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path+"?"+query, nil))
		}()
	}
	got := map[string]float64{}
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if !slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == "webhook" && l.GetValue() == path }) {
				continue
			}
			switch f.GetName() {
			case "controller_runtime_webhook_requests_total":
				got[m.Label[0].GetValue()] = m.Counter.GetValue()
			case "controller_runtime_webhook_requests_in_flight":
				got["in flight"] = m.Gauge.GetValue()
			case "controller_runtime_webhook_latency_seconds":
				got["latency"] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	if want := "map[200:3 409:1 500:1 in flight:0 latency:5]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
