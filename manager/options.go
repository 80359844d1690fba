// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/manager/config"
	"github.com/wherry-dev/wherry/manager/leaderelection"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/webhook"
)

// The defaults of durations and names.
const (
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
	defaultRetryPeriod   = 2 * time.Second
	defaultGracePeriod   = 30 * time.Second
	defaultLiveness      = "/healthz"
	defaultReadiness     = "/readyz"
)

// BaseContextFunc makes the context from which the contexts of runnables are made. It is called when the manager starts.
// Ending that context stops the runnables out of order; values are what it is for.
type BaseContextFunc func() context.Context

// Options shape a manager. The zero value is a manager with no election, no probes, and metrics at :8080.
type Options struct {
	// Scheme maps Go types to kinds. Nil means the default scheme of package client/apiutil.
	Scheme *runtime.Scheme

	// MapperProvider makes the mapper from kinds to resources. Nil means one that asks the API server when it is first needed.
	MapperProvider func(c *rest.Config, httpClient *http.Client) (meta.RESTMapper, error)

	// Cache shapes the cache that the manager's client reads from.
	Cache cache.Options

	// NewCache makes the cache. Nil means cache.New.
	NewCache cache.NewCacheFunc

	// Client shapes the manager's client.
	Client client.Options

	// NewClient makes the client. Nil means client.New.
	NewClient client.NewClientFunc

	// Logger is the manager's, and the base of the loggers of its runnables. The zero value means client/log.Log.
	Logger logr.Logger

	// LeaderElection lets one replica only run what needs leadership.
	LeaderElection bool

	// LeaderElectionResourceLock is the kind of the lock. "" means "leases", and there is no other.
	LeaderElectionResourceLock string

	// LeaderElectionNamespace is the namespace of the lease. "" means the one this pod runs in; outside a cluster it must be set.
	LeaderElectionNamespace string

	// LeaderElectionID is the name of the lease. It must be set if LeaderElection is on.
	LeaderElectionID string

	// LeaderElectionConfig reaches the API server that has the lease. Nil means New's config.
	LeaderElectionConfig *rest.Config

	// LeaderElectionReleaseOnCancel gives the lease up at an orderly stop, after the last runnable that needs leadership has
	// ended, so that another replica leads at once. If one has not ended within the grace period, the lease is kept until it
	// expires.
	LeaderElectionReleaseOnCancel bool

	// LeaderElectionLabels are put on the lease.
	LeaderElectionLabels map[string]string

	// LeaderElectionResourceLockInterface is a lock to use instead of a lease. The package leaderelection/resourcelock makes
	// one of a lock of client-go's.
	LeaderElectionResourceLockInterface leaderelection.Lock

	// LeaderElectionStandDown keeps the process after a loss of the lease: runnables that need leadership are stopped, the rest
	// goes on, and the manager campaigns again. Such runnables must bear a Start after their Start has returned. Only their
	// writes, made with their contexts, are fenced then. By default a loss ends Start with an error, and after the term the
	// manager's client refuses all writes but events.
	LeaderElectionStandDown bool

	// LeaseDuration is how long other replicas wait for a leader that gives no sign of life. Nil means 15 s.
	LeaseDuration *time.Duration

	// RenewDeadline is how long a leader goes on without renewing its lease. Nil means 10 s.
	RenewDeadline *time.Duration

	// RetryPeriod is the pause between attempts to get or to renew the lease. Nil means 2 s.
	RetryPeriod *time.Duration

	// Metrics shapes the metrics server.
	Metrics metricsserver.Options

	// HealthProbeBindAddress is the TCP address of the probes, "host:port". "" and "0" mean no probes.
	HealthProbeBindAddress string

	// ReadinessEndpointName is the path of the readiness probe. "" means /readyz.
	ReadinessEndpointName string

	// LivenessEndpointName is the path of the liveness probe. "" means /healthz.
	LivenessEndpointName string

	// PprofBindAddress is the TCP address of Go's profiles, below /debug/pprof/. "" and "0" mean none. They have no
	// authentication: bind a loopback address.
	PprofBindAddress string

	// WebhookServer is the server of webhooks. Nil means webhook.NewServer with its defaults. It runs only if somebody asks for
	// it with GetWebhookServer.
	WebhookServer webhook.Server

	// BaseContext makes the base of runnables' contexts. Nil means context.Background.
	BaseContext BaseContextFunc

	// EventBroadcaster records events of the core group.
	//
	// Deprecated: it must be shut down by whoever made it, which cannot be done in the right moment. Leave it nil.
	EventBroadcaster record.EventBroadcaster

	// GracefulShutdownTimeout is how long runnables may take to stop before Start returns without them, with an error that
	// names them. Nil means 30 s, 0 that Start waits for none, and a negative value that it waits for ever.
	GracefulShutdownTimeout *time.Duration

	// Controller holds defaults for all controllers of the manager.
	Controller config.Controller

	// listen opens the listeners of probes and profiles; tests replace it.
	listen func(address string) (net.Listener, error)
}

func (o *Options) setDefaults() {
	if o.Logger.GetSink() == nil {
		o.Logger = log.Log
	}
	if o.Controller.Logger.GetSink() == nil {
		o.Controller.Logger = o.Logger
	}
	if o.WebhookServer == nil {
		o.WebhookServer = webhook.NewServer(webhook.Options{})
	}
	if o.BaseContext == nil {
		o.BaseContext = context.Background
	}
	if o.listen == nil {
		o.listen = func(address string) (net.Listener, error) { return net.Listen("tcp", address) }
	}
	o.LivenessEndpointName = endpoint(cmp.Or(o.LivenessEndpointName, defaultLiveness))
	o.ReadinessEndpointName = endpoint(cmp.Or(o.ReadinessEndpointName, defaultReadiness))
	o.LeaseDuration = orDefault(o.LeaseDuration, defaultLeaseDuration)
	o.RenewDeadline = orDefault(o.RenewDeadline, defaultRenewDeadline)
	o.RetryPeriod = orDefault(o.RetryPeriod, defaultRetryPeriod)
	o.GracefulShutdownTimeout = orDefault(o.GracefulShutdownTimeout, defaultGracePeriod)
}

// endpoint is a path as the probes' multiplexer needs it.
func endpoint(path string) string { return "/" + strings.Trim(path, "/") }

func orDefault(d *time.Duration, def time.Duration) *time.Duration {
	if d == nil {
		return &def
	}
	return d
}

func (o *Options) timing() leaderelection.Timing {
	return leaderelection.Timing{LeaseDuration: *o.LeaseDuration, RenewDeadline: *o.RenewDeadline, RetryPeriod: *o.RetryPeriod}
}

// off says whether a bind address asks for no server.
func off(address string) bool { return address == "" || address == "0" }
