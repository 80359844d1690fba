// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/manager/healthz"
	"github.com/wherry-dev/wherry/webhook/review"
)

const (
	// headerTimeout, readTimeout, idleTimeout and maxHeaderBytes bound what a client can hold without asking anything.
	headerTimeout  = 10 * time.Second
	readTimeout    = 30 * time.Second
	idleTimeout    = 90 * time.Second
	maxHeaderBytes = 1 << 20
	// writeTimeout runs from the end of a request's header, so it holds the slowest body and then the 30 s that an API server
	// waits for a webhook at most. A profile served from the same port extends it by itself.
	writeTimeout = readTimeout + 35*time.Second
	// maxStreams bounds the requests of one HTTP/2 connection.
	maxStreams = 100
	// shutdownTimeout is how long requests under way may take after the server was told to stop; then they are cut.
	shutdownTimeout = time.Minute
)

// Server serves webhooks over HTTPS. A manager starts it before its caches: listing a kind may need our own conversion.
type Server interface {
	// NeedLeaderElection is false: every replica answers.
	NeedLeaderElection() bool

	// Register serves hook at path, before or after Start. It panics if the path is taken.
	Register(path string, hook http.Handler)

	// Start serves until ctx ends and requests under way are answered, for a minute at most. It can be called once.
	Start(ctx context.Context) error

	// StartedChecker fails until the server takes connections, and again when it has ended.
	StartedChecker() healthz.Checker

	// WebhookMux is what paths are registered on.
	WebhookMux() *http.ServeMux
}

// NewServer returns a server. It opens and reads nothing: that is Start's.
func NewServer(o Options) Server { return &DefaultServer{Options: o} }

// DefaultServer is the server that NewServer makes. Its zero value with Options set is one too. Safe for concurrent use.
type DefaultServer struct {
	// Options are read once, when the server is first used.
	Options Options

	setUp sync.Once
	log   logr.Logger
	// listen opens the listener; tests put one in memory.
	listen func(ctx context.Context, address string) (net.Listener, error)

	mu    sync.Mutex
	paths map[string]bool // guarded by mu
	state serverState     // guarded by mu
	tls   *tls.Config     // guarded by mu: what is served with, once it is
}

type serverState int

const (
	notStarted serverState = iota
	starting
	serving
	ended
)

func (s *DefaultServer) init() {
	s.setUp.Do(func() {
		s.Options.setDefaults()
		s.log = log.Log.WithName("controller-runtime").WithName("webhook")
		s.paths = map[string]bool{}
		if s.listen == nil {
			s.listen = func(ctx context.Context, address string) (net.Listener, error) {
				return new(net.ListenConfig).Listen(ctx, "tcp", address)
			}
		}
	})
}

// NeedLeaderElection implements Server.
func (*DefaultServer) NeedLeaderElection() bool { return false }

// String names the server in a manager's errors.
func (*DefaultServer) String() string { return "webhook server" }

// WebhookMux implements Server.
func (s *DefaultServer) WebhookMux() *http.ServeMux {
	s.init()
	return s.Options.WebhookMux
}

// Register implements Server. What is registered here is counted by its path; what is put on WebhookMux directly is not.
func (s *DefaultServer) Register(path string, hook http.Handler) {
	s.init()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paths[path] {
		panic(fmt.Sprintf("webhook server: register %T: there is a webhook at %q already", hook, path))
	}
	s.Options.WebhookMux.Handle(path, review.Metered(path, hook))
	s.paths[path] = true
	s.log.Info("Registering webhook", "path", path)
}

// StartedChecker implements Server. It asks the server's state and does not call it: a probe would cost a handshake each
// time, and one that fails where clients need a certificate.
func (s *DefaultServer) StartedChecker() healthz.Checker {
	s.init()
	return func(*http.Request) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case s.Options.Port == noPort, s.state == serving:
			return nil
		case s.state == ended:
			return errors.New("webhook server has ended")
		default:
			return errors.New("webhook server has not been started yet")
		}
	}
}

// Start implements Server.
func (s *DefaultServer) Start(ctx context.Context) error {
	s.init()
	if err := s.begin(); err != nil {
		return err
	}
	defer s.enter(ended)
	if s.Options.Port == noPort {
		s.log.Info("Webhook server is switched off", "port", noPort)
		return nil
	}
	s.log.Info("Starting webhook server")
	secured, err := s.secure()
	if err != nil {
		return fmt.Errorf("webhook server: %w", err)
	}
	listener, err := s.listen(ctx, s.Options.address())
	if err != nil {
		return fmt.Errorf("webhook server: listen on %q: %w", s.Options.address(), err)
	}
	stopWatching := secured.watch(ctx)
	defer stopWatching()
	s.mu.Lock()
	s.tls, s.state = secured.config, serving
	s.mu.Unlock()
	s.log.Info("Serving webhook server", "host", s.Options.Host, "port", s.Options.Port)
	return s.serve(ctx, s.httpServer(ctx, secured.config), listener)
}

func (s *DefaultServer) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != notStarted {
		return errors.New("webhook server: started twice")
	}
	s.state = starting
	return nil
}

func (s *DefaultServer) enter(state serverState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

func (s *DefaultServer) httpServer(ctx context.Context, config *tls.Config) *http.Server {
	h2 := slices.Contains(config.NextProtos, "h2")
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(h2)
	return &http.Server{
		Handler:           s.Options.WebhookMux,
		TLSConfig:         config,
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          newErrorLog(s.log),
		BaseContext:       func(net.Listener) context.Context { return log.IntoContext(context.WithoutCancel(ctx), s.log) },
	}
}

// serve runs srv until ctx ends, then stops it.
func (s *DefaultServer) serve(ctx context.Context, srv *http.Server, listener net.Listener) error {
	served := make(chan error, 1)
	go func() { served <- srv.ServeTLS(listener, "", "") }()
	select {
	case err := <-served:
		return fmt.Errorf("webhook server: %w", err)
	case <-ctx.Done():
	}
	s.log.Info("Shutting down webhook server", "timeout", shutdownTimeout)
	s.enter(ended)
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := srv.Shutdown(grace)
	if err != nil {
		err = errors.Join(fmt.Errorf("webhook server: requests cut after %s: %w", shutdownTimeout, err), srv.Close())
	}
	<-served
	return err
}
