// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func (l *memListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

func (l *memListener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// run starts a server in memory, and gives a client for it and a stop that waits for its end.
func run(t *testing.T, o Options) (s *server, client *http.Client, stop func() error) {
	t.Helper()
	made, err := NewServer(o, &rest.Config{}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	s = made.(*server)
	l := newMemListener()
	s.listen = func(context.Context) (net.Listener, error) { return l, nil }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	transport := &http.Transport{DialContext: l.dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}}}
	return s, &http.Client{Transport: transport}, func() error {
		transport.CloseIdleConnections()
		cancel()
		return <-ended
	}
}

func get(t *testing.T, c *http.Client, url string) (code int, body string, resp *http.Response) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp
}

func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) })
}

func TestNoServer(t *testing.T) {
	if s, err := NewServer(Options{BindAddress: "0"}, nil, nil); s != nil || err != nil {
		t.Errorf("%v, %v", s, err)
	}
}

func TestServesMetricsAndExtraHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c, stop := run(t, Options{ExtraHandlers: map[string]http.Handler{"/extra": text("extra")}})
		synctest.Wait()
		if s.NeedLeaderElection() {
			t.Error("waits for leadership")
		}
		if code, body, _ := get(t, c, "http://x/metrics"); code != 200 || !strings.Contains(body, "go_goroutines") {
			t.Errorf("metrics: %d %.80s", code, body)
		}
		if code, body, _ := get(t, c, "http://x/extra"); code != 200 || body != "extra" {
			t.Errorf("extra: %d %s", code, body)
		}
		if code, _, _ := get(t, c, "http://x/"); code != 404 {
			t.Errorf("unknown path: %d", code)
		}
		if err := s.AddExtraHandler("/late", text("late")); err == nil {
			t.Error("a handler was added to a server that runs")
		}
		if got := s.GetBindAddr(); got != "memory" {
			t.Errorf("address %q", got)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := s.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
	})
}

func TestAddExtraHandler(t *testing.T) {
	made, err := NewServer(Options{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.AddExtraHandler("/a", text("")); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/a", "/metrics"} {
		if err := made.AddExtraHandler(path, text("")); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := NewServer(Options{ExtraHandlers: map[string]http.Handler{"/metrics": text("")}}, nil, nil); err == nil {
		t.Error("/metrics was taken")
	}
}

func TestFilterStandsBeforeEveryPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := 0
		_, c, stop := run(t, Options{
			ExtraHandlers: map[string]http.Handler{"/extra": text("extra")},
			FilterProvider: func(c *rest.Config, h *http.Client) (Filter, error) {
				if c != nil && h != nil {
					config++
				}
				return func(_ logr.Logger, next http.Handler) (http.Handler, error) {
					return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
						if req.URL.Query().Has("open") {
							next.ServeHTTP(w, req)
							return
						}
						w.WriteHeader(http.StatusTeapot)
					}), nil
				}, nil
			},
		})
		for _, path := range []string{"/metrics", "/extra"} {
			if code, _, _ := get(t, c, "http://x"+path); code != http.StatusTeapot {
				t.Errorf("%s unfiltered: %d", path, code)
			}
			if code, _, _ := get(t, c, "http://x"+path+"?open"); code != 200 {
				t.Errorf("%s: %d", path, code)
			}
		}
		if err := stop(); err != nil || config != 1 {
			t.Errorf("%v; filter made %d times with the arguments", err, config)
		}
	})
}

func TestBadFilter(t *testing.T) {
	boom := errors.New("boom")
	_, err := NewServer(Options{FilterProvider: func(*rest.Config, *http.Client) (Filter, error) { return nil, boom }}, nil, nil)
	if !errors.Is(err, boom) {
		t.Error(err)
	}
	made, err := NewServer(Options{FilterProvider: func(*rest.Config, *http.Client) (Filter, error) {
		return func(logr.Logger, http.Handler) (http.Handler, error) { return nil, boom }, nil
	}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Start(t.Context()); !errors.Is(err, boom) {
		t.Error(err)
	}
}

func TestPortInUse(t *testing.T) {
	made, err := NewServer(Options{BindAddress: "here:1"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	taken := errors.New("address already in use")
	made.(*server).listen = func(context.Context) (net.Listener, error) { return nil, taken }
	if err := made.Start(t.Context()); !errors.Is(err, taken) || !strings.Contains(err.Error(), "here:1") {
		t.Error(err)
	}
}

func TestStopWaitsForRequestsUnderWayAMinuteAtMost(t *testing.T) {
	for _, c := range []struct {
		takes, stops time.Duration
		cut          bool
	}{{20 * time.Second, 20 * time.Second, false}, {time.Hour, time.Minute, true}} {
		synctest.Test(t, func(t *testing.T) {
			_, client, stop := run(t, Options{ExtraHandlers: map[string]http.Handler{"/slow": http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				select {
				case <-time.After(c.takes):
				case <-req.Context().Done():
				}
			})}})
			asked := make(chan error, 1)
			go func() {
				resp, err := client.Get("http://x/slow")
				if err == nil {
					_ = resp.Body.Close()
				}
				asked <- err
			}()
			synctest.Wait()
			began := time.Now()
			err := stop()
			if d := time.Since(began); d < c.stops || d > c.stops+time.Second {
				t.Errorf("stopped after %s, want %s", d, c.stops)
			}
			if (err != nil) != c.cut {
				t.Errorf("stop: %v", err)
			}
			if err := <-asked; (err != nil) != c.cut {
				t.Errorf("request: %v", err)
			}
			client.CloseIdleConnections()
		})
	}
}

// ownCertificate is a new one for localhost.
func ownCertificate(t *testing.T) *tls.Certificate {
	t.Helper()
	own, err := webhook.NewSelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{}
	own.TLS(config)
	c, err := config.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// writePair puts a new certificate for localhost into dir.
func writePair(t *testing.T, dir string) {
	t.Helper()
	c := ownCertificate(t)
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})
	for name, b := range map[string][]byte{"tls.crt": cert, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSecureServing(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  []func(*tls.Config)
		proto string
	}{
		{"HTTP/2 is off", nil, "HTTP/1.1"},
		{"HTTP/2 on demand", []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"h2"} }}, "HTTP/2.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, client, stop := run(t, Options{SecureServing: true, CertDir: t.TempDir(), TLSOpts: c.opts})
			client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
			code, _, resp := get(t, client, "https://x/metrics")
			if code != 200 || resp.TLS == nil || resp.Proto != c.proto {
				t.Errorf("%d over %s, TLS %v", code, resp.Proto, resp.TLS != nil)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTLSOptsCertificateComesFirst(t *testing.T) {
	own := ownCertificate(t)
	dir := t.TempDir()
	writePair(t, dir)
	_, client, stop := run(t, Options{SecureServing: true, CertDir: dir, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own, nil }
	}}})
	_, _, resp := get(t, client, "https://x/metrics")
	if string(resp.TLS.PeerCertificates[0].Raw) != string(own.Certificate[0]) {
		t.Error("another certificate was served")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestRenewedCertificateIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		writePair(t, dir)
		_, client, stop := run(t, Options{SecureServing: true, CertDir: dir})
		client.Transport.(*http.Transport).DisableKeepAlives = true
		served := func() string {
			_, _, resp := get(t, client, "https://x/metrics")
			return string(resp.TLS.PeerCertificates[0].Raw)
		}
		old := served()
		writePair(t, dir)
		time.Sleep(11 * time.Second)
		if served() == old {
			t.Error("the old certificate is still served")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestBadCertificateAtStart(t *testing.T) {
	dir := t.TempDir()
	writePair(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := NewServer(Options{SecureServing: true, CertDir: dir}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Start(t.Context()); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "tls.crt")) {
		t.Errorf("error %v does not name the file", err)
	}
}
