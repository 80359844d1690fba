// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// devServer is a server with a certificate of its own.
func devServer(t *testing.T, change ...func(*tls.Config)) (*DefaultServer, []byte) {
	t.Helper()
	cert, err := NewSelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	opts := append([]func(*tls.Config){cert.TLS}, change...)
	return NewServer(Options{TLSOpts: opts}).(*DefaultServer), cert.CABundle
}

func get(t *testing.T, c *http.Client, path string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get("https://localhost" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func say(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) })
}

func TestServerLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ca := devServer(t)
		m := newMemory()
		check := s.StartedChecker()
		if err := check(nil); err == nil || !strings.Contains(err.Error(), "not been started") {
			t.Errorf("before the start: %v", err)
		}
		s.Register("/early", say("early"))
		stop := m.run(t, s)
		if err := check(nil); err != nil {
			t.Errorf("while it serves: %v", err)
		}
		s.Register("/late", say("late"))
		c := m.client(t, ca)
		for _, want := range []string{"early", "late"} {
			if _, got := get(t, c, "/"+want); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "twice") {
			t.Errorf("second start: %v", err)
		}
		if err := stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if err := check(nil); err == nil || !strings.Contains(err.Error(), "ended") {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestServerSwitchedOff(t *testing.T) {
	s := &DefaultServer{Options: Options{Port: -1}}
	s.listen = func(context.Context, string) (net.Listener, error) { return nil, errors.New("must not listen") }
	s.Register("/x", say("x"))
	if err := s.Start(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.StartedChecker()(nil); err != nil {
		t.Errorf("a server that is off keeps nothing waiting, got %v", err)
	}
}

func TestServerStartFails(t *testing.T) {
	dir := t.TempDir()
	tests := map[string]struct {
		options Options
		listen  error
		want    string
	}{
		"no certificate": {Options{CertDir: dir}, nil, dir + "/tls.crt"},
		"no client CA":   {Options{CertDir: dir, ClientCAName: "ca.crt", TLSOpts: []func(*tls.Config){new(SelfSigned).TLS}}, nil, dir + "/ca.crt"},
		"port in use":    {Options{Host: "h", Port: 7, TLSOpts: []func(*tls.Config){new(SelfSigned).TLS}}, errors.New("in use"), `listen on "h:7": in use`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := &DefaultServer{Options: test.options}
			s.listen = func(context.Context, string) (net.Listener, error) { return nil, test.listen }
			err := s.Start(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), "webhook server: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want it to name %q", err, test.want)
			}
			if s.StartedChecker()(nil) == nil {
				t.Error("a server that failed is no started one")
			}
		})
	}
}

func TestRegisterTwice(t *testing.T) {
	s := NewServer(Options{})
	s.Register("/x", say("x"))
	defer func() {
		if r, _ := recover().(string); !strings.Contains(r, `"/x"`) {
			t.Errorf("want a panic that names the path, got %q", r)
		}
	}()
	s.Register("/x", say("x"))
}

func TestHTTP2OnlyIfAsked(t *testing.T) {
	for name, change := range map[string]func(*tls.Config){
		"HTTP/1.1": func(*tls.Config) {},
		"HTTP/2.0": func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ca := devServer(t, change)
				m := newMemory()
				s.WebhookMux().Handle("/x", say("x"))
				defer m.run(t, s)()
				c := m.client(t, ca)
				resp, _ := get(t, c, "/x")
				if resp.Proto != name {
					t.Errorf("got %s", resp.Proto)
				}
				c.CloseIdleConnections()
			})
		})
	}
}
