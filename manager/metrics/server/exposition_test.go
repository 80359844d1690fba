// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

func sample() *prometheus.Registry {
	r := prometheus.NewRegistry()
	one := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "one_total", Help: "One"}, []string{"a"})
	one.WithLabelValues("x\"y").Add(3)
	two := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "two", Help: "Two", Buckets: []float64{1, 2}})
	two.Observe(1.5)
	r.MustRegister(one, two)
	return r
}

// What a scraper gets is what client_golang's own handler gives, to the byte.
func TestExposition(t *testing.T) {
	for name, test := range map[string]struct{ query, accept, encoding string }{
		"text":           {"", "", ""},
		"gzip":           {"", "", "gzip"},
		"gzip, weighted": {"", "", "deflate, gzip;q=0.5"},
		"gzip refused":   {"", "", "gzip;q=0"},
		"plain first":    {"", "", "gzip;q=0.1, identity;q=0.9"},
		"unknown coding": {"", "", "br"},
		"protobuf":       {"", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "gzip"},
		"text of 0.0.4":  {"", "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", ""},
		"one family":     {"?name[]=two", "", ""},
		"two families":   {"?name[]=two&name[]=one_total", "", "gzip"},
		"no such family": {"?name[]=three", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ask := func(h http.Handler) *httptest.ResponseRecorder {
				req := httptest.NewRequest(http.MethodGet, "/metrics"+test.query, nil)
				for key, value := range map[string]string{"Accept": test.accept, "Accept-Encoding": test.encoding} {
					if value != "" {
						req.Header.Set(key, value)
					}
				}
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, req)
				return rec
			}
			registry := sample()
			got, want := ask(exposition{registry}), ask(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
			if got.Code != want.Code || !bytes.Equal(got.Body.Bytes(), want.Body.Bytes()) {
				t.Errorf("got %d %q, want %d %q", got.Code, got.Body, want.Code, want.Body)
			}
			for _, key := range []string{"Content-Type", "Content-Encoding"} {
				if got, want := got.Header().Get(key), want.Header().Get(key); got != want && want != "identity" {
					t.Errorf("%s: got %q, want %q", key, got, want)
				}
			}
		})
	}
}

func TestExpositionOfTrouble(t *testing.T) {
	broken := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, errors.New("a collector failed") })
	rec := httptest.NewRecorder()
	exposition{broken}.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusInternalServerError || !bytes.Contains(rec.Body.Bytes(), []byte("a collector failed")) {
		t.Errorf("got %d %q", rec.Code, rec.Body)
	}
}

// failing stands for a connection that breaks after some bytes.
type failing struct {
	*httptest.ResponseRecorder
	left int
}

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errors.New("broken pipe")
	}
	return f.ResponseRecorder.Write(b)
}

func TestExpositionBreaksOff(t *testing.T) {
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("an answer that broke off looks whole")
		}
	}()
	exposition{sample()}.ServeHTTP(&failing{httptest.NewRecorder(), 50}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
}
