// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package healthz_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/wherry-dev/wherry/manager/healthz"
)

func bad(*http.Request) error { return errors.New("secret reason") }

func TestHandler(t *testing.T) {
	mixed := map[string]healthz.Checker{"b": bad, "a": healthz.Ping}
	well := map[string]healthz.Checker{"b": healthz.Ping, "a": healthz.Ping}
	for _, c := range []struct {
		name   string
		checks map[string]healthz.Checker
		target string
		code   int
		body   string
	}{
		{"no checks", nil, "/", 200, "ok"},
		{"no checks, empty path", nil, "", 200, "ok"},
		{"no checks, verbose", nil, "/?verbose", 200, "[+]ping ok\nhealthz check passed\n"},
		{"no checks, ping", nil, "/ping", 200, "ok"},
		{"no ping among checks", well, "/ping", 404, "404 page not found\n"},
		{"all well", well, "/", 200, "ok"},
		{"all well, verbose", well, "/?verbose=true", 200, "[+]a ok\n[+]b ok\nhealthz check passed\n"},
		{"all well, excluded and verbose", well, "/?verbose&exclude=b", 200, "[+]a ok\n[+]b excluded: ok\nhealthz check passed\n"},
		{"one bad", mixed, "/", 500, "[+]a ok\n[-]b failed: reason withheld\nhealthz check failed\n"},
		{"the bad one excluded", mixed, "/?exclude=b", 200, "ok"},
		{"both excluded", mixed, "/?exclude=b&exclude=a&verbose", 200, "[+]a excluded: ok\n[+]b excluded: ok\nhealthz check passed\n"},
		{"excluding in one value", mixed, "/?exclude=b,a&verbose", 200, "[+]a excluded: ok\n[+]b excluded: ok\nhealthz check passed\n"},
		{"excluding what is not there", mixed, "/?exclude=z", 500, "[+]a ok\n[-]b failed: reason withheld\n" +
			"warn: some health checks cannot be excluded: no matches for \"z\"\nhealthz check failed\n"},
		{"one check", mixed, "/a", 200, "ok"},
		{"one check, odd path", mixed, "//x/../a/", 200, "ok"},
		{"the bad check", mixed, "/b", 500, "internal server error: reason withheld\n"},
		{"unknown check", mixed, "/z", 404, "404 page not found\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodGet, "http://host/x", nil)
			u, err := req.URL.Parse("http://host" + c.target)
			if err != nil {
				t.Fatal(err)
			}
			req.URL = u
			var logged strings.Builder
			req = req.WithContext(logr.NewContext(req.Context(), funcr.New(func(prefix, args string) { fmt.Fprintln(&logged, args) }, funcr.Options{Verbosity: 1})))
			w := httptest.NewRecorder()
			(&healthz.Handler{Checks: c.checks}).ServeHTTP(w, req)
			if w.Code != c.code || w.Body.String() != c.body {
				t.Errorf("got %d %q, want %d %q", w.Code, w.Body.String(), c.code, c.body)
			}
			if wantLog := c.code == 500; strings.Contains(logged.String(), "secret reason") != wantLog {
				t.Errorf("reason in the log: %v, want %v: %s", !wantLog, wantLog, logged.String())
			}
		})
	}
}

func ExampleHandler() {
	h := http.StripPrefix("/readyz", &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz?verbose", nil))
	fmt.Print(w.Body)
	// Output:
	// [+]ping ok
	// healthz check passed
}
