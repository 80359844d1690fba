// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/manager/leaderelection/fake"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
)

// memListener is a listener without a port: dial makes the connections.
type memListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemListener() *memListener {
	return &memListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memListener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

func (l *memListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// get asks for a path over a connection of its own, which no keep-alive holds.
func (l *memListener) get(t *testing.T, path string) (code int, body string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		select {
		case l.conns <- server:
			return client, nil
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("http://memory" + path)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}

// world is an API server without a network: leases are real, everything else is counted and answered with itself.
type world struct {
	fake.LeaseServer

	mu    sync.Mutex
	delay time.Duration // of every answer that is not about a lease
	sent  []sent
}

type sent struct {
	method, path, body string
	at                 time.Time
}

func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.Contains(req.URL.Path, "coordination.k8s.io") {
		return w.LeaseServer.RoundTrip(req)
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	w.mu.Lock()
	w.sent = append(w.sent, sent{req.Method, req.URL.Path, string(body), time.Now()})
	delay := w.delay
	w.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: req, Header: http.Header{"Content-Type": {req.Header.Get("Content-Type")}},
		Body: io.NopCloser(strings.NewReader(string(body))),
	}, nil
}

// writes are the requests that change something at a path that holds part, oldest first.
func (w *world) writes(part string) []sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []sent
	for _, s := range w.sent {
		if s.method != http.MethodGet && strings.Contains(s.path, part) {
			out = append(out, s)
		}
	}
	return out
}

func (w *world) config() *rest.Config {
	return &rest.Config{Host: "https://server", Transport: w, QPS: -1}
}

// options are those of a manager that opens no port and asks for no discovery.
func (w *world) options() Options {
	return Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			m := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
			m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			return m, nil
		},
	}
}

// electing is options with election on.
func (w *world) electing() Options {
	o := w.options()
	o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "op", "ns"
	o.LeaderElectionReleaseOnCancel = true
	return o
}
