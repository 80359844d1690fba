// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package replicaset_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// tally is a proxy before the API server. It counts the requests that pass it, for each namespace.
type tally struct {
	url string

	mu     sync.Mutex
	counts map[call]int
}

// call is what tells requests apart.
type call struct {
	namespace string
	method    string
	resource  string // with the subresource, such as "replicasets/status"
	refused   bool
}

// newTally starts a proxy to the server of cfg, which ends with the test.
func newTally(t *testing.T, cfg *rest.Config) *tally {
	t.Helper()
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	c := &tally{counts: map[call]int{}}
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // watches
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			c.count(r.Request, r.StatusCode >= http.StatusBadRequest)
			return nil
		},
		// A client that went away is no news, and anything else the client hears of.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	c.url = server.URL
	return c
}

// config is for a client whose requests are counted.
func (c *tally) config() *rest.Config { return &rest.Config{Host: c.url, QPS: -1} }

func (c *tally) count(r *http.Request, refused bool) {
	_, path, inNamespace := strings.Cut(r.URL.Path, "/namespaces/")
	if !inNamespace {
		return
	}
	parts := strings.Split(path, "/") // namespace, resource, name, subresource
	if len(parts) < 2 {
		return
	}
	k := call{namespace: parts[0], method: r.Method, resource: parts[1], refused: refused}
	if len(parts) > 3 {
		k.resource += "/" + parts[3]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[k]++
}

// sum adds up the calls that match.
func (c *tally) sum(match func(call) bool) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, count := range c.counts {
		if match(k) {
			n += count
		}
	}
	return n
}
