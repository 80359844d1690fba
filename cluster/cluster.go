// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/cluster/recorder"
)

// Cluster is one cluster's client, cache and recorders. All methods may be called at once from many goroutines.
type Cluster interface {
	// GetHTTPClient returns the client that sends all requests. It is the cluster's own.
	GetHTTPClient() *http.Client

	// GetConfig returns the config the cluster was made from. It must not be changed.
	GetConfig() *rest.Config

	// GetCache returns the cache.
	GetCache() cache.Cache

	// GetScheme returns the scheme that tells the kinds of typed objects.
	GetScheme() *runtime.Scheme

	// GetClient returns the client. It reads from the cache, so reads fail until the cluster is started, and shows its
	// own writes at once.
	GetClient() client.Client

	// GetFieldIndexer returns what adds indexes to the cache.
	GetFieldIndexer() client.FieldIndexer

	// GetEventRecorderFor returns a recorder of core/v1 events.
	//
	// Deprecated: use GetEventRecorder.
	GetEventRecorderFor(name string) record.EventRecorder

	// GetEventRecorder returns a recorder of events.k8s.io/v1 events in the name of a controller.
	GetEventRecorder(name string) recorder.EventRecorder

	// GetRESTMapper returns the mapper that tells the resources of kinds.
	GetRESTMapper() meta.RESTMapper

	// GetAPIReader returns a reader that asks the server each time. It works before the cluster is started.
	GetAPIReader() client.Reader

	// Start fills the cache and sends events until ctx is done; it returns when the cache has ended and the events that
	// were recorded are sent, within a limit. It may be called once.
	Start(ctx context.Context) error
}

// New puts a cluster together. It sends nothing unless the cache's options need it. config is copied.
func New(config *rest.Config, opts ...Option) (Cluster, error) {
	var options Options
	for _, opt := range opts {
		opt(&options)
	}
	c, err := newCluster(config, &options)
	if err != nil {
		return nil, fmt.Errorf("make a cluster: %w", err)
	}
	return c, nil
}

// cluster is the Cluster that New makes.
type cluster struct {
	config    *rest.Config
	http      *http.Client
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
	cache     cache.Cache
	client    client.Client
	apiReader client.Reader
	recorders *recorder.Recorders
}

var _ recorder.Provider = (*cluster)(nil)

func newCluster(original *rest.Config, o *Options) (*cluster, error) {
	if err := o.settle(original); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(original)
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	c := &cluster{config: config, http: o.HTTPClient, scheme: o.Scheme}
	var err error
	if c.mapper, err = o.MapperProvider(config, c.http); err != nil {
		return nil, fmt.Errorf("make the mapper: %w", err)
	}
	if c.cache, err = o.NewCache(config, c.cacheOptions(o)); err != nil {
		return nil, err
	}
	if c.client, err = o.NewClient(config, c.clientOptions(o)); err != nil {
		return nil, err
	}
	live := c.clientOptions(o)
	live.Cache = nil
	if c.apiReader, err = client.New(config, live); err != nil {
		return nil, err
	}
	c.recorders, err = recorder.New(config, recorder.Options{
		HTTPClient: c.http, Scheme: c.scheme, Log: o.Logger.WithName("events"), EventBroadcaster: o.EventBroadcaster,
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (c *cluster) cacheOptions(o *Options) cache.Options {
	out := o.Cache
	if out.Scheme == nil {
		out.Scheme = c.scheme
	}
	if out.Mapper == nil {
		out.Mapper = c.mapper
	}
	if out.HTTPClient == nil {
		out.HTTPClient = c.http
	}
	return out
}

func (c *cluster) clientOptions(o *Options) client.Options {
	out := o.Client
	if out.Scheme == nil {
		out.Scheme = c.scheme
	}
	if out.Mapper == nil {
		out.Mapper = c.mapper
	}
	if out.HTTPClient == nil {
		out.HTTPClient = c.http
	}
	var reads client.CacheOptions
	if out.Cache != nil {
		reads = *out.Cache
	}
	if reads.Reader == nil {
		reads.Reader = c.cache
	}
	if _, hears := reads.Reader.(client.WriteGate); hears && reads.EnableReadYourWritesConsistency == nil {
		on := true
		reads.EnableReadYourWritesConsistency = &on
	}
	out.Cache = &reads
	return out
}

// Start runs the cache and the recorders until ctx is done.
func (c *cluster) Start(ctx context.Context) error {
	// Events go on being sent while the cache ends: its handlers may record some.
	events, stop := context.WithCancel(context.WithoutCancel(ctx))
	var sending sync.WaitGroup
	sending.Go(func() { c.recorders.Run(events) })
	err := c.cache.Start(ctx)
	stop()
	sending.Wait()
	return err
}

// The parts.

func (c *cluster) GetHTTPClient() *http.Client          { return c.http }
func (c *cluster) GetConfig() *rest.Config              { return c.config }
func (c *cluster) GetCache() cache.Cache                { return c.cache }
func (c *cluster) GetScheme() *runtime.Scheme           { return c.scheme }
func (c *cluster) GetClient() client.Client             { return c.client }
func (c *cluster) GetFieldIndexer() client.FieldIndexer { return c.cache }
func (c *cluster) GetRESTMapper() meta.RESTMapper       { return c.mapper }
func (c *cluster) GetAPIReader() client.Reader          { return c.apiReader }
func (c *cluster) GetEventRecorderFor(name string) record.EventRecorder {
	return c.recorders.GetEventRecorderFor(name)
}
func (c *cluster) GetEventRecorder(name string) recorder.EventRecorder {
	return c.recorders.GetEventRecorder(name)
}
