// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/wherry-dev/wherry/client/log"
)

func TestServer(t *testing.T) {
	for _, c := range []struct {
		name         string
		timeout      *time.Duration
		takes, stops time.Duration
		cut          bool
	}{
		{"nothing under way", nil, 0, 0, false},
		{"without limit", nil, time.Hour, time.Hour, false},
		{"in time", new(time.Minute), 30 * time.Second, 30 * time.Second, false},
		{"too slow", new(time.Minute), time.Hour, time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newMemListener()
				seen := make(chan context.Context, 1)
				s := &Server{Name: "x", Listener: l, ShutdownTimeout: c.timeout, Server: newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					seen <- req.Context()
					select {
					case <-time.After(c.takes):
						_, _ = io.WriteString(w, "done")
					case <-req.Context().Done():
					}
				}))}
				ctx, cancel := context.WithCancel(log.IntoContext(t.Context(), logr.Discard()))
				ended := make(chan error, 1)
				go func() { ended <- s.Start(ctx) }()
				asked := make(chan bool, 1)
				if c.takes > 0 {
					go func() { asked <- ask(l) == "done" }()
				} else if ask(l) != "done" {
					t.Error("no answer")
				}
				if _, err := logr.FromContext(<-seen); err != nil {
					t.Errorf("no logger in a request: %v", err)
				}
				synctest.Wait()
				cancel()
				began := time.Now()
				err := <-ended
				within(t, "stopped", time.Since(began), c.stops, c.stops+time.Second)
				if (err != nil) != c.cut || c.cut && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Start: %v", err)
				}
				if c.takes > 0 && <-asked == c.cut {
					t.Error("the request under way ended otherwise")
				}
				if !l.isClosed() {
					t.Error("the listener is open")
				}
				if err := s.Start(t.Context()); err == nil {
					t.Error("served twice")
				}
			})
		})
	}
}

// ask gets an answer over a connection of its own, or what went wrong.
func ask(l *memListener) string {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		l.conns <- server
		return client, nil
	}}
	resp, err := (&http.Client{Transport: transport}).Get("http://x/")
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestServerThatCannotListen(t *testing.T) {
	s := &Server{Server: &http.Server{Addr: "no such address"}}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "no such address") {
		t.Errorf("Start: %v", err)
	}
	l := newMemListener()
	_ = l.Close()
	if err := (&Server{Server: &http.Server{}, Listener: l}).Start(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Start: %v", err)
	}
}

func TestServerStage(t *testing.T) {
	for s, want := range map[*Server]stage{{}: stageHTTP, {OnlyServeWhenLeader: true}: stageElected} {
		if got := stageOf(s); got != want {
			t.Errorf("only when leader %v: stage %d, want %d", s.OnlyServeWhenLeader, got, want)
		}
	}
}
