// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/manager/metrics"
	"github.com/wherry-dev/wherry/webhook/certwatcher"
)

const (
	metricsPath = "/metrics"

	// shutdownTimeout is how long requests under way may take after the server was told to stop; then they are cut.
	shutdownTimeout = time.Minute
	// headerTimeout, idleTimeout and maxHeaderBytes bound what a client can hold without asking anything. There is no limit
	// for an answer: extra handlers may be profiles, which take as long as the caller wants.
	headerTimeout  = 32 * time.Second
	idleTimeout    = 90 * time.Second
	maxHeaderBytes = 1 << 20
)

// Server serves metrics. A manager starts it before everything else and stops it last.
type Server interface {
	// AddExtraHandler serves handler at path. It fails for a path that is taken, for /metrics, and once the server started.
	AddExtraHandler(path string, handler http.Handler) error

	// NeedLeaderElection is false: every replica has metrics.
	NeedLeaderElection() bool

	// Start serves until ctx ends and requests under way are answered, for a minute at most. It can be called once.
	Start(ctx context.Context) error
}

// NewServer returns a server, or nil without an error if o.BindAddress is "0". It opens nothing: that is Start's. config and
// httpClient serve o.FilterProvider only.
func NewServer(o Options, config *rest.Config, httpClient *http.Client) (Server, error) {
	o.setDefaults()
	if o.BindAddress == "0" {
		return nil, nil
	}
	s := &server{options: o, handlers: map[string]http.Handler{}, log: log.Log.WithName("controller-runtime").WithName("metrics")}
	s.listen = func(ctx context.Context) (net.Listener, error) {
		return o.ListenConfig.Listen(ctx, "tcp", o.BindAddress)
	}
	for _, path := range slices.Sorted(maps.Keys(o.ExtraHandlers)) {
		if err := s.AddExtraHandler(path, o.ExtraHandlers[path]); err != nil {
			return nil, err
		}
	}
	if o.FilterProvider != nil {
		filter, err := o.FilterProvider(config, httpClient)
		if err != nil {
			return nil, fmt.Errorf("metrics server: make the filter: %w", err)
		}
		s.filter = filter
	}
	return s, nil
}

type server struct {
	options Options
	filter  Filter // nil for none
	log     logr.Logger
	listen  func(context.Context) (net.Listener, error)

	mu       sync.Mutex
	handlers map[string]http.Handler // guarded by mu
	started  bool                    // guarded by mu
	address  string                  // guarded by mu: where it listens, once it does
}

func (*server) NeedLeaderElection() bool { return false }

// String names the server in a manager's errors.
func (*server) String() string { return "metrics server" }

// GetBindAddr is the address the server listens on, with the real port; "" before it does.
func (s *server) GetBindAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

func (s *server) AddExtraHandler(path string, handler http.Handler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.started:
		return fmt.Errorf("metrics server: handler for %q comes after the start", path)
	case path == metricsPath:
		return fmt.Errorf("metrics server: %q is taken by the metrics themselves", path)
	case s.handlers[path] != nil:
		return fmt.Errorf("metrics server: %q has a handler already", path)
	}
	s.handlers[path] = handler
	return nil
}

func (s *server) Start(ctx context.Context) error {
	mux, err := s.mux()
	if err != nil {
		return err
	}
	srv := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return log.IntoContext(context.WithoutCancel(ctx), s.log) },
	}
	watcher, err := s.secure(srv)
	if err != nil {
		return fmt.Errorf("metrics server: %w", err)
	}
	if watcher != nil {
		watching, stop := context.WithCancel(ctx)
		var watched sync.WaitGroup
		watched.Go(func() { _ = watcher.Start(watching) }) // it ends with its context, and logs its own trouble
		defer watched.Wait()
		defer stop()
	}
	s.log.Info("Starting metrics server")
	listener, err := s.listen(ctx)
	if err != nil {
		return fmt.Errorf("metrics server: listen on %q: %w", s.options.BindAddress, err)
	}
	s.mu.Lock()
	s.address = listener.Addr().String()
	s.mu.Unlock()
	s.log.Info("Serving metrics server", "bindAddress", s.options.BindAddress, "secure", s.options.SecureServing)
	return serve(ctx, srv, listener)
}

// serve runs srv until ctx ends, then stops it.
func serve(ctx context.Context, srv *http.Server, listener net.Listener) error {
	served := make(chan error, 1)
	go func() {
		if srv.TLSConfig != nil {
			served <- srv.ServeTLS(listener, "", "")
		} else {
			served <- srv.Serve(listener)
		}
	}()
	select {
	case err := <-served:
		return fmt.Errorf("metrics server: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	err := srv.Shutdown(grace)
	if err != nil {
		err = errors.Join(fmt.Errorf("metrics server: requests cut after %s: %w", shutdownTimeout, err), srv.Close())
	}
	<-served
	return err
}

// mux closes the list of handlers and puts the filter in front of each.
func (s *server) mux() (*http.ServeMux, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started {
		return nil, errors.New("metrics server: started twice")
	}
	s.started = true
	all := maps.Clone(s.handlers)
	all[metricsPath] = exposition{metrics.Registry}
	mux := http.NewServeMux()
	for path, handler := range all {
		if s.filter != nil {
			filtered, err := s.filter(s.log.WithValues("path", path), handler)
			if err != nil {
				return nil, fmt.Errorf("metrics server: filter for %q: %w", path, err)
			}
			handler = filtered
		}
		mux.Handle(path, handler)
	}
	return mux, nil
}

// secure gives srv its TLS settings if it is to have any. A watcher it returns must run while srv serves.
func (s *server) secure(srv *http.Server) (watcher *certwatcher.CertWatcher, err error) {
	if !s.options.SecureServing {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	for _, change := range s.options.TLSOpts {
		change(config)
	}
	if config.GetCertificate == nil && len(config.Certificates) == 0 && config.GetConfigForClient == nil {
		if watcher, err = s.certify(config); err != nil {
			return nil, err
		}
	}
	srv.TLSConfig = config
	srv.Protocols = &http.Protocols{}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(slices.Contains(config.NextProtos, "h2"))
	return watcher, nil
}
