// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/log"
)

// Options tell how a cluster is put together. The zero value is ready.
type Options struct {
	// Scheme tells the kinds of typed objects. Nil means the default scheme.
	Scheme *runtime.Scheme

	// MapperProvider makes the mapper that tells the resources of kinds. Nil means apiutil.NewDynamicRESTMapper.
	MapperProvider func(c *rest.Config, httpClient *http.Client) (meta.RESTMapper, error)

	// Logger is where the cluster's parts log. The zero value means log.Log.
	Logger logr.Logger

	// HTTPClient sends all requests. Nil means one made from the config.
	HTTPClient *http.Client

	// Cache holds the options of the cache. HTTPClient, Scheme and Mapper are filled in where they are nil.
	Cache cache.Options

	// NewCache makes the cache. Nil means cache.New.
	NewCache cache.NewCacheFunc

	// Client holds the options of the client. HTTPClient, Scheme, Mapper and Cache.Reader are filled in where they are
	// nil, and Cache.EnableReadYourWritesConsistency is on unless it is set.
	Client client.Options

	// NewClient makes the client. Nil means client.New.
	NewClient client.NewClientFunc

	// EventBroadcaster takes the core/v1 events. Whoever sets it shuts it down.
	//
	// Deprecated: events are sent, counted and flushed without it.
	EventBroadcaster record.EventBroadcaster
}

// Option changes the options of a cluster.
type Option func(*Options)

// settle fills in what is not set.
func (o *Options) settle(config *rest.Config) error {
	if config == nil {
		return errors.New("the config must not be nil, see package client/config")
	}
	if o.HTTPClient == nil {
		made, err := rest.HTTPClientFor(config)
		if err != nil {
			return err
		}
		// Clusters are told apart by their client, so it is never the one that net/http shares.
		own := *made
		o.HTTPClient = &own
	}
	if o.Scheme == nil {
		o.Scheme = apiutil.DefaultScheme()
	}
	if o.MapperProvider == nil {
		o.MapperProvider = apiutil.NewDynamicRESTMapper
	}
	if o.NewCache == nil {
		o.NewCache = cache.New
	}
	if o.NewClient == nil {
		o.NewClient = client.New
	}
	if o.Logger.GetSink() == nil {
		o.Logger = log.Log.WithName("cluster")
	}
	return nil
}
