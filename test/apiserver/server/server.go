// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/test/apiserver/controllers"
	"github.com/wherry-dev/wherry/test/apiserver/facade"
	"github.com/wherry-dev/wherry/test/apiserver/identity"
	"github.com/wherry-dev/wherry/test/apiserver/private"
	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

const (
	// readyLimit is how long a server may take to become ready before Start gives up. It needs a second of a processor,
	// and where twenty others want the same one it was seen to wait two minutes for that. It is for callers without a
	// limit of their own, which is their context's.
	readyLimit = 10 * time.Minute
	// stopLimit is how long Stop waits for Kubernetes' own orderly end before it closes the store regardless.
	stopLimit = 4 * time.Second
	// drainLimit is how long idle connections are waited for. Requests under way are waited for besides; what is left
	// then are connections, and those are closed.
	drainLimit = 100 * time.Millisecond
	// watchGrace is how long watches are waited for after they were told to end.
	watchGrace = time.Second
)

// Server is one running API server. Make it with Start, end it with Stop.
type Server struct {
	parts  parts
	config *rest.Config

	loopback    *rest.Config                         // of the server's own parts
	informed    map[string]cache.SharedIndexInformer // the server's own informers, by the prefix of their keys
	restoring   sync.Mutex                           // held by Restore; guards controllers
	controllers *controllers.Set
	halting     context.Context         // ends when the server begins to stop
	halt        context.CancelCauseFunc // ends it
	cancel      context.CancelCauseFunc // ends everything below
	ran         chan struct{}           // closed when kube-apiserver has returned
	done        chan struct{}           // closed when all is closed
	stop        sync.Once
	failed      atomic.Pointer[error] // why the server ended, if nobody asked it to
	err         error                 // what went wrong while stopping; read after done
}

// Start runs a server and returns when it answers /readyz. The context covers the start only: once Start has
// returned, end the server with Stop. When the context ends first, Start takes down what it built and returns an error
// that wraps the context's cause and tells what was still waited for.
//
// An error names what is in the way and the remedy in one line: a folder in use, unwritable or open to others, a
// corrupt log, a port in use, a flag that does not exist.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := prepareProcess(); err != nil {
		return nil, err
	}
	s := &Server{parts: parts{options: o}, ran: make(chan struct{}), done: make(chan struct{})}
	s.halting, s.halt = context.WithCancelCause(context.Background())
	if err := s.open(); err != nil {
		s.close()
		return nil, err
	}
	begun := time.Now()
	if err := sheltered(func() error { return s.run(ctx) }); err != nil {
		s.shut()
		if ctx.Err() != nil {
			return nil, cutShort(ctx, time.Since(begun), err)
		}
		return nil, err
	}
	return s, nil
}

// cutShort is the error of a start whose context ended, whatever went wrong by that.
func cutShort(ctx context.Context, after time.Duration, err error) error {
	cause := context.Cause(ctx)
	short := fmt.Errorf("%w, %v after the server's start and before it was ready", cause, after.Round(time.Millisecond))
	if errors.Is(err, cause) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return short // it says no more
	}
	return fmt.Errorf("%w: %w", short, err)
}

// open takes the data folder, the identity in it and the port.
func (s *Server) open() error {
	p := &s.parts
	var err error
	if p.options.Storage == file.Memory {
		p.identity, err = identity.New()
	} else if err = private.Dir(p.options.DataDir); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if p.store, err = file.Open(file.Options{Dir: p.options.DataDir, Mode: p.options.Storage}); err != nil {
		return err
	}
	if p.identity == nil {
		// Only now: the store's lock is what keeps two servers from making two identities.
		if p.identity, err = identity.Open(p.options.DataDir); err != nil {
			return err
		}
	}
	port, err := net.Listen("tcp4", net.JoinHostPort(loopback, strconv.Itoa(p.options.Port)))
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("port %d is in use by another program: stop that one, name another port, or leave it out "+
				"for a free one", p.options.Port)
		}
		if errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("port %d may not be used by this user: name one above 1023, or leave it out for a free one",
				p.options.Port)
		}
		return fmt.Errorf("cannot listen on %s: %w", loopback, err)
	}
	p.listener = newListener(port)
	p.facade = facade.New(raw{p.store}, facadeKeys...)
	// Names of informers must differ within a process, and so do ports.
	if p.informer, err = cache.NewInformerName("kube-apiserver-" + p.listener.Addr().String()); err != nil {
		return fmt.Errorf("name the server's informers: %w", err)
	}
	return nil
}

// run puts the server together, starts it and waits until it is ready.
func (s *Server) run(ctx context.Context) error {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.cancel = cancel
	stopCarry := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stopCarry()

	running := false
	defer func() {
		if !running {
			close(s.ran) // it never will
		}
	}()
	p := &s.parts
	if err := p.complete(inner); err != nil {
		return err
	}
	chain, config, err := p.chain()
	if err != nil {
		return err
	}
	if !p.options.Stock {
		if err := p.seed(inner, config); err != nil {
			return err
		}
	}
	s.serveAdmin(chain.GenericAPIServer.Handler.NonGoRestfulMux)
	prepared, err := chain.PrepareRun()
	if err != nil {
		return fmt.Errorf("prepare the server: %w", err)
	}
	s.config = clientConfig(p)
	s.loopback = config.KubeAPIs.ControlPlane.Generic.LoopbackClientConfig
	s.enlist()
	running = true
	go func() {
		defer close(s.ran)
		if err := prepared.Run(inner); err != nil && inner.Err() == nil {
			s.fail(fmt.Errorf("the server ended: %w", err))
		}
	}()
	if err := s.await(inner); err != nil {
		return err
	}
	s.informed = informersByPrefix(inner, config.KubeAPIs.ControlPlane.VersionedInformers, p.keyPrefix)
	s.restoring.Lock() // a server that fails now stops them once they are started
	defer s.restoring.Unlock()
	return s.startControllers(inner)
}

// fail records why the server cannot go on and begins to take it down. The first reason counts.
func (s *Server) fail(err error) {
	if s.failed.CompareAndSwap(nil, &err) {
		s.cancel(err)
		go s.shut()
	}
}

// Config returns what a client needs to reach the server as its administrator. Each call returns a new copy.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.config) }

// URL returns the server's address.
func (s *Server) URL() string { return s.config.Host }

// Identity returns the server's authority and administrator's token.
func (s *Server) Identity() *identity.Identity { return s.parts.identity }

// Notes tells what opening the data folder found out of order and put right, such as a torn end of the log.
func (s *Server) Notes() []string { return s.parts.store.Notes() }

// UnexpectedEtcdCalls returns the calls kube-apiserver made to etcd that this package does not answer. There are none
// unless a new release of Kubernetes makes new ones.
func (s *Server) UnexpectedEtcdCalls() []string { return s.parts.facade.Unexpected() }

// Done is closed when the server has ended, be it by Stop or by itself; Err tells which.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns why the server ended by itself, or nil if it runs or was stopped.
func (s *Server) Err() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Stop ends the server: requests under way are answered, watches end, everything written is on disk. It takes at most
// about five seconds, may be called more than once and from several goroutines, and returns what went wrong, if anything.
func (s *Server) Stop() error {
	s.shut()
	return errors.Join(s.Err(), s.err)
}

func (s *Server) shut() {
	s.stop.Do(func() {
		defer close(s.done)
		s.halt(errStopped)
		s.restoring.Lock() // a Restore under way is cut short by halt, and none begins after it
		s.controllers.Stop()
		s.restoring.Unlock()
		s.cancel(errStopped)
		limit := time.NewTimer(stopLimit)
		defer limit.Stop()
		select {
		case <-s.ran:
		case <-limit.C:
			// Nothing is lost by going on: whatever was acknowledged is in the store.
		}
		s.leave()
		s.err = s.close()
	})
	<-s.done
}

var errStopped = errors.New("the server was stopped")

// close lets go of what open took, newest first.
func (s *Server) close() error {
	p := &s.parts
	var errs []error
	p.informer.Release()
	if p.listener != nil {
		p.listener.closeAll()
	}
	if p.facade != nil {
		p.facade.Stop()
	}
	if p.stopEtcd != nil {
		p.stopEtcd()
	}
	if p.store != nil {
		if err := p.store.Close(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func clientConfig(p *parts) *rest.Config {
	return &rest.Config{
		Host:            "https://" + p.listener.Addr().String(),
		BearerToken:     p.identity.Token(),
		TLSClientConfig: rest.TLSClientConfig{CAData: p.identity.CA()},
		QPS:             -1, // no limit: the server is ours alone
	}
}
