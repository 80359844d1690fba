// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/cluster"
	"github.com/wherry-dev/wherry/manager/config"
	"github.com/wherry-dev/wherry/manager/healthz"
	"github.com/wherry-dev/wherry/manager/leaderelection"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/conversion"
)

// Manager runs an operator: it shares one cluster's client and cache among runnables, and starts and stops them. All methods
// are safe for concurrent use.
type Manager interface {
	// Cluster is the cluster that the manager's runnables work on. Its Start is the manager's.
	cluster.Cluster

	// Add takes a runnable. Added before Start, it starts with the others of its stage; added later, at once or, if it needs
	// leadership, when the process leads. After a failure or a stop Add returns an error.
	Add(Runnable) error

	// Elected is closed when this process leads for the first time, or, without election, when runnables that would need
	// leadership start.
	Elected() <-chan struct{}

	// AddMetricsServerExtraHandler serves handler at path beside the metrics. It fails once the manager started, and does
	// nothing if there is no metrics server.
	AddMetricsServerExtraHandler(path string, handler http.Handler) error

	// AddHealthzCheck adds a check to the liveness probe; one with that name is replaced. It fails once the manager started.
	AddHealthzCheck(name string, check healthz.Checker) error

	// AddReadyzCheck adds a check to the readiness probe; one with that name is replaced. It fails once the manager started.
	AddReadyzCheck(name string, check healthz.Checker) error

	// Start starts everything in order and blocks until ctx ends or a runnable fails, then stops everything in order. It
	// returns nil if the stop was wanted and all runnables ended within the grace period, else an error that names the
	// runnable. After a lost lease the error is one for which errors.Is(err, leaderelection.ErrLost) holds, and the process is
	// expected to exit. A manager starts once.
	Start(ctx context.Context) error

	// GetWebhookServer returns the webhook server. The first call adds it to the manager: without one, none is served.
	GetWebhookServer() webhook.Server

	// GetLogger returns the manager's logger.
	GetLogger() logr.Logger

	// GetControllerOptions returns the defaults for controllers.
	GetControllerOptions() config.Controller

	// GetConverterRegistry returns where converters between versions of a kind are registered.
	GetConverterRegistry() conversion.Registry
}

// controllerManager is a lifecycle around a cluster.
type controllerManager struct {
	cluster.Cluster
	life *lifecycle

	log            logr.Logger
	controller     config.Controller
	metrics        metricsserver.Server // nil for none
	healthz, ready *probe
	listeners      []net.Listener // of the manager's own servers, open since New

	webhooks    webhook.Server
	addWebhooks sync.Once // adds webhooks to life
	converters  conversion.Registry
}

var _ Manager = (*controllerManager)(nil)

// New makes a manager for the cluster that config reaches. It makes no request, but listens already where probes and profiles
// are served, so that a port in use is an error here. config is not changed; options are the manager's from here on.
func New(config *rest.Config, options Options) (Manager, error) {
	if config == nil {
		return nil, errors.New("manager: must specify Config")
	}
	options.setDefaults()
	if options.LivenessEndpointName == options.ReadinessEndpointName {
		return nil, fmt.Errorf("manager: liveness and readiness probe share the path %s", options.LivenessEndpointName)
	}
	m := &controllerManager{
		log: options.Logger, controller: options.Controller,
		healthz: &probe{name: "healthz"}, ready: &probe{name: "readyz"},
		webhooks: options.WebhookServer, converters: conversion.NewRegistry(),
	}
	var err error
	fence := &leaderelection.Fence{}
	if m.Cluster, err = newCluster(config, &options, fence); err != nil {
		return nil, err
	}
	e, err := options.newElection(config, m.Cluster, fence)
	if err != nil {
		return nil, err
	}
	m.life = newLifecycle(options.Logger, options.BaseContext, *options.GracefulShutdownTimeout, e)
	if err := m.life.add(m.Cluster); err != nil {
		return nil, err
	}
	if m.metrics, err = metricsserver.NewServer(options.Metrics, m.GetConfig(), m.GetHTTPClient()); err != nil {
		return nil, err
	}
	if m.metrics != nil {
		if err := m.life.add(m.metrics); err != nil {
			return nil, err
		}
	}
	if err := m.addServers(&options); err != nil {
		return nil, err
	}
	return m, nil
}

// newCluster makes the manager's cluster, with the fence in front of everything it sends if there is to be an election.
func newCluster(config *rest.Config, o *Options, fence *leaderelection.Fence) (cluster.Cluster, error) {
	config = rest.CopyConfig(config)
	if o.LeaderElection {
		config.Wrap(fence.Wrap)
		if own := o.Client.HTTPClient; own != nil {
			o.Client.HTTPClient = fenced(own, fence)
		}
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	if httpClient == http.DefaultClient {
		httpClient = &http.Client{} // one of its own: it is what tells managers apart
	}
	return cluster.New(config, func(c *cluster.Options) {
		c.Scheme = o.Scheme
		c.MapperProvider = o.MapperProvider
		c.Logger = o.Logger
		c.HTTPClient = httpClient
		c.NewCache = o.NewCache
		c.NewClient = o.NewClient
		c.Cache = o.Cache
		c.Client = o.Client
		c.EventBroadcaster = o.EventBroadcaster
	})
}

// fenced is a copy of c with the fence in front.
func fenced(c *http.Client, fence *leaderelection.Fence) *http.Client {
	own := *c
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	own.Transport = fence.Wrap(own.Transport)
	return &own
}

// newElection makes the manager's part in the election, nil for none.
func (o *Options) newElection(config *rest.Config, c cluster.Cluster, fence *leaderelection.Fence) (*election, error) {
	if !o.LeaderElection {
		return nil, nil
	}
	lock := o.LeaderElectionResourceLockInterface
	if lock == nil {
		if o.LeaderElectionConfig != nil {
			config = o.LeaderElectionConfig
		}
		var err error
		lock, err = leaderelection.NewResourceLock(config, c, leaderelection.Options{
			LeaderElection:             true,
			LeaderElectionResourceLock: o.LeaderElectionResourceLock,
			LeaderElectionNamespace:    o.LeaderElectionNamespace,
			LeaderElectionID:           o.LeaderElectionID,
			RenewDeadline:              *o.RenewDeadline,
			LeaderLabels:               o.LeaderElectionLabels,
		})
		if err != nil {
			return nil, err
		}
	}
	e, err := newElection(o.LeaderElectionID, lock, o.timing(), o.Logger)
	if err != nil {
		return nil, err
	}
	e.fence, e.release, e.standDown = fence, o.LeaderElectionReleaseOnCancel, o.LeaderElectionStandDown
	return e, nil
}

// addServers opens the listeners of probes and profiles. If one fails, none is left open.
func (m *controllerManager) addServers(o *Options) error {
	for _, s := range []struct {
		name, address string
		handler       http.Handler
	}{
		{"health probe", o.HealthProbeBindAddress, probeHandler(map[string]*probe{o.LivenessEndpointName: m.healthz, o.ReadinessEndpointName: m.ready})},
		{"pprof", o.PprofBindAddress, profileHandler()},
	} {
		if off(s.address) {
			continue
		}
		listener, err := o.listen(s.address)
		if err != nil {
			m.closeListeners()
			return fmt.Errorf("manager: %s server: error listening on %s: %w", s.name, s.address, err)
		}
		m.listeners = append(m.listeners, listener)
		if err := m.life.add(&Server{Name: s.name, Server: newHTTPServer(s.handler), Listener: listener}); err != nil {
			return err
		}
	}
	return nil
}

// closeListeners closes what addServers has opened. Servers that ran have done so already: a second time does no harm.
func (m *controllerManager) closeListeners() {
	for _, l := range m.listeners {
		_ = l.Close()
	}
}

func (m *controllerManager) Add(r Runnable) error {
	if r == nil {
		return errors.New("manager: nil runnable")
	}
	return m.life.add(r)
}

func (m *controllerManager) Start(ctx context.Context) error {
	m.healthz.close()
	m.ready.close()
	err := m.life.run(ctx)
	if !errors.Is(err, errRanBefore) {
		m.closeListeners() // a run that ended before its first stage has not served them
	}
	return err
}

func (m *controllerManager) Elected() <-chan struct{} { return m.life.elected }

func (m *controllerManager) AddHealthzCheck(name string, check healthz.Checker) error {
	return m.healthz.add(name, check)
}

func (m *controllerManager) AddReadyzCheck(name string, check healthz.Checker) error {
	return m.ready.add(name, check)
}

func (m *controllerManager) AddMetricsServerExtraHandler(path string, handler http.Handler) error {
	switch {
	case m.life.hasStarted():
		return fmt.Errorf("manager: metrics handler for %q comes after the start", path)
	case m.metrics == nil:
		m.log.Info("there is no metrics server, the extra handler is not served", "path", path)
		return nil
	}
	return m.metrics.AddExtraHandler(path, handler)
}

func (m *controllerManager) GetWebhookServer() webhook.Server {
	m.addWebhooks.Do(func() {
		if err := m.life.add(m.webhooks); err != nil {
			m.log.Error(err, "the webhook server does not start")
		}
	})
	return m.webhooks
}

func (m *controllerManager) GetConverterRegistry() conversion.Registry { return m.converters }

func (m *controllerManager) GetLogger() logr.Logger { return m.log }

func (m *controllerManager) GetControllerOptions() config.Controller { return m.controller }
