// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/wherry-dev/wherry/client/log"
)

// Server is an HTTP server as a [Runnable]. Fill its fields before it is added; it serves once.
type Server struct {
	// Name is what logs and errors call it. "" means its address.
	Name string

	// Server is the server to run; it must be set. A BaseContext of its own is kept.
	Server *http.Server

	// Listener is where connections come from; Start closes it. Nil means the TCP address of Server.
	Listener net.Listener

	// OnlyServeWhenLeader makes the server wait for leadership. By default it starts first of all and stops last.
	OnlyServeWhenLeader bool

	// ShutdownTimeout is how long requests under way may take after the stop, before they are cut. Nil means without limit.
	ShutdownTimeout *time.Duration

	served atomic.Bool
}

// String names the server.
func (s *Server) String() string {
	switch {
	case s.Name != "":
		return "server " + s.Name
	case s.Listener != nil:
		return "server at " + s.Listener.Addr().String()
	case s.Server != nil:
		return "server at " + s.Server.Addr
	}
	return "server"
}

// NeedLeaderElection says whether the server waits for leadership.
func (s *Server) NeedLeaderElection() bool { return s.OnlyServeWhenLeader }

// Start serves until ctx ends, then lets requests under way finish. It fails at once if it cannot listen.
func (s *Server) Start(ctx context.Context) error {
	if s.Server == nil {
		return errors.New("manager.Server without an http.Server")
	}
	if s.served.Swap(true) {
		return errors.New("manager.Server started twice")
	}
	logger := log.FromContext(ctx)
	if s.Name != "" {
		logger = logger.WithValues("name", s.Name)
	}
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	if s.Server.BaseContext == nil {
		base := log.IntoContext(context.WithoutCancel(ctx), logger)
		s.Server.BaseContext = func(net.Listener) context.Context { return base }
	}
	logger.Info("starting server", "addr", listener.Addr().String())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve at %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	logger.Info("shutting down server", "addr", listener.Addr().String())
	err = s.shutdown(ctx, logger)
	<-ended
	return err
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	if s.Listener != nil {
		return s.Listener, nil
	}
	address := s.Server.Addr
	if address == "" {
		address = ":http"
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}

func (s *Server) serve(listener net.Listener) error {
	if s.Server.TLSConfig != nil && s.Listener == nil {
		return s.Server.ServeTLS(listener, "", "")
	}
	return s.Server.Serve(listener)
}

func (s *Server) shutdown(ctx context.Context, logger logr.Logger) error {
	limit := context.WithoutCancel(ctx)
	if s.ShutdownTimeout != nil {
		var done context.CancelFunc
		limit, done = context.WithTimeout(limit, *s.ShutdownTimeout)
		defer done()
	}
	if err := s.Server.Shutdown(limit); err != nil {
		logger.Info("requests cut, they took longer than the shutdown timeout", "error", err.Error())
		return errors.Join(fmt.Errorf("shut down: %w", err), s.Server.Close())
	}
	return nil
}

const (
	// Bounds of the manager's own servers; none of them reads a body.
	headerTimeout  = 32 * time.Second
	idleTimeout    = 90 * time.Second
	maxHeaderBytes = 1 << 20
)

func newHTTPServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes}
}
