// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
)

// memory is a network of one server: connections are pipes.
type memory struct {
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), gone: make(chan struct{})} }

func (m *memory) listen(context.Context, string) (net.Listener, error) { return m, nil }

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.gone:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.gone) })
	return nil
}

func (*memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case m.conns <- theirs:
		return ours, nil
	case <-m.gone:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// client makes a client of the server in m, which trusts what is in caBundle and takes no connection twice.
func (m *memory) client(t *testing.T, caBundle []byte, change ...func(*tls.Config)) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(caBundle) {
		t.Fatal("no certificate to trust")
	}
	config := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	for _, c := range change {
		c(config)
	}
	transport := &http.Transport{DialContext: m.dial, TLSClientConfig: config, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	return &http.Client{Transport: transport}
}

// run starts a server in m. The returned function stops it and gives Start's error. Call both in a synctest bubble.
func (m *memory) run(t *testing.T, s *DefaultServer) (stop func() error) {
	t.Helper()
	s.listen = m.listen
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-ended
	}
}
