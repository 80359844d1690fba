// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"k8s.io/kubernetes/pkg/kubeapiserver"

	"github.com/wherry-dev/wherry/test/apiserver/identity"
)

const (
	// loopbackName is the server name the server's own clients ask for.
	loopbackName = genericapiserver.LoopbackClientServerNameOverride
	// informerResync is kube-apiserver's own value for the informers its parts share.
	informerResync = 10 * time.Minute
	protobuf       = "application/vnd.kubernetes.protobuf"
)

// config makes the configuration of the three servers, by our own steps or by kube-apiserver's.
func (p *parts) config() (*app.Config, error) {
	if p.options.Stock {
		config, err := app.NewConfig(p.flags)
		if err != nil {
			return nil, fmt.Errorf("configure the server: %w", err)
		}
		p.admitAdmin(config.KubeAPIs.ControlPlane.Generic)
		config.ApiExtensions.GenericConfig.Authentication = config.KubeAPIs.ControlPlane.Generic.Authentication
		config.Aggregator.GenericConfig.Authentication = config.KubeAPIs.ControlPlane.Generic.Authentication
		return config, nil
	}
	generic, shared, storage, err := p.generic()
	if err != nil {
		return nil, fmt.Errorf("configure the server: %w", err)
	}
	kube, resolver, initializers, err := app.CreateKubeAPIServerConfig(p.flags, generic, shared, storage)
	if err != nil {
		return nil, fmt.Errorf("configure Kubernetes' own APIs: %w", err)
	}
	cp := &kube.ControlPlane
	ext, err := controlplaneapiserver.CreateAPIExtensionsConfig(*cp.Generic, cp.VersionedInformers, initializers,
		p.flags.CompletedOptions, p.flags.MasterCount, resolver,
		webhook.NewDefaultAuthenticationInfoResolverWrapper(cp.ProxyTransport, cp.Generic.EgressSelector,
			cp.Generic.LoopbackClientConfig, cp.Generic.TracerProvider))
	if err != nil {
		return nil, fmt.Errorf("configure custom resources: %w", err)
	}
	agg, err := controlplaneapiserver.CreateAggregatorConfig(*cp.Generic, p.flags.CompletedOptions, cp.VersionedInformers,
		resolver, cp.ProxyTransport, cp.PeerProxy, initializers)
	if err != nil {
		return nil, fmt.Errorf("configure aggregation: %w", err)
	}
	return &app.Config{Options: p.flags, KubeAPIs: kube, ApiExtensions: ext, Aggregator: agg}, nil
}

// generic makes what the three servers share. kube-apiserver has a function for it; this one differs in that it uses
// our one ECDSA certificate for the server's own clients too, where that one makes an RSA key at every start.
func (p *parts) generic() (*genericapiserver.Config, informers.SharedInformerFactory, *serverstorage.DefaultStorageFactory, error) {
	o := p.flags
	c := genericapiserver.NewConfig(legacyscheme.Codecs)
	c.Flagz = o.Flagz
	c.MergedResourceConfig = controlplane.DefaultAPIResourceConfigSource()
	if err := o.GenericServerRunOptions.ApplyTo(c); err != nil {
		return nil, nil, nil, err
	}
	if err := o.SecureServing.SecureServingOptions.ApplyTo(&c.SecureServing); err != nil {
		return nil, nil, nil, err
	}
	token, err := identity.New() // an identity of its own: this token is never told to anyone
	if err != nil {
		return nil, nil, nil, err
	}
	if c.LoopbackClientConfig, err = c.SecureServing.NewLoopbackClientConfig(token.Token(), p.identity.CA()); err != nil {
		return nil, nil, nil, fmt.Errorf("configure the server's own clients: %w", err)
	}
	c.LoopbackClientConfig.ContentType = protobuf
	c.LoopbackClientConfig.DisableCompression = true
	client, err := kubernetes.NewForConfig(c.LoopbackClientConfig)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make the server's own client: %w", err)
	}
	shared := informers.NewSharedInformerFactoryWithOptions(client, informerResync,
		informers.WithTransform(dropManagedFields), informers.WithInformerName(p.informer))

	for _, apply := range []func() error{
		func() error { return o.Features.ApplyTo(c, client, shared) },
		func() error {
			return o.APIEnablement.ApplyTo(c, controlplane.DefaultAPIResourceConfigSource(), legacyscheme.Scheme)
		},
		func() error { return o.EgressSelector.ApplyTo(c) },
		func() error { return o.Traces.ApplyTo(c.EgressSelector, c) },
	} {
		if err := apply(); err != nil {
			return nil, nil, nil, err
		}
	}
	documentation(c)
	storage, err := p.storageFactory(c)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := p.guard(c, client, shared); err != nil {
		return nil, nil, nil, err
	}
	if err := o.Audit.ApplyTo(c); err != nil {
		return nil, nil, nil, err
	}
	c.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	return c, shared, storage, nil
}

// documentation sets which requests may run long and how the APIs are described.
func documentation(c *genericapiserver.Config) {
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	namer := openapinamer.NewDefinitionNamer(legacyscheme.Scheme, extensions.Scheme, aggregatorscheme.Scheme)
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	c.OpenAPIConfig.Info.Title = "Kubernetes"
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	c.OpenAPIV3Config.Info.Title = "Kubernetes"
	c.LongRunningFunc = filters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))
}

// storageFactory settles in which version and encoding each resource is stored.
func (p *parts) storageFactory(c *genericapiserver.Config) (*serverstorage.DefaultStorageFactory, error) {
	etcd := p.flags.Etcd
	etcd.StorageConfig.Transport.TracerProvider = c.TracerProvider
	fc := kubeapiserver.NewStorageFactoryConfigEffectiveVersion(c.EffectiveVersion)
	fc.APIResourceConfig = c.MergedResourceConfig
	fc.DefaultResourceEncoding.SetEffectiveVersion(c.EffectiveVersion)
	storage, err := fc.Complete(etcd).New()
	if err != nil {
		return nil, fmt.Errorf("settle how resources are stored: %w", err)
	}
	storage.StorageConfig.StorageObjectCountTracker = c.StorageObjectCountTracker
	if err := etcd.ApplyWithStorageFactoryTo(storage, c); err != nil {
		return nil, fmt.Errorf("settle how resources are stored: %w", err)
	}
	p.prefixes = storage
	return storage, nil
}

// guard settles who a request comes from and what it may do.
func (p *parts) guard(c *genericapiserver.Config, client kubernetes.Interface, shared informers.SharedInformerFactory) error {
	o := p.flags
	// It ends when the server has drained, as everything does that waits on it.
	ctx := wait.ContextForChannel(c.DrainedNotify())
	if err := o.Authentication.ApplyTo(ctx, &c.Authentication, c.SecureServing, c.EgressSelector, c.OpenAPIConfig,
		c.OpenAPIV3Config, client, shared, c.APIServerID); err != nil {
		return fmt.Errorf("settle authentication: %w", err)
	}
	p.admitAdmin(c)
	var err error
	c.Authorization.Authorizer, c.RuleResolver, _, err = controlplaneapiserver.BuildAuthorizer(ctx, o.CompletedOptions,
		c.EgressSelector, c.APIServerID, shared)
	if err != nil {
		return fmt.Errorf("settle authorization: %w", err)
	}
	return nil
}

// admitAdmin makes the administrator's token known.
func (p *parts) admitAdmin(c *genericapiserver.Config) {
	tokens := map[string]*user.DefaultInfo{
		p.identity.Token(): {Name: identity.AdminName, UID: identity.AdminName, Groups: []string{user.AllAuthenticated, identity.AdminGroup}},
	}
	c.Authentication.Authenticator = union.New(
		authenticatorfactory.NewFromTokens(tokens, c.Authentication.APIAudiences), c.Authentication.Authenticator)
}

// dropManagedFields keeps the server's own caches small: none of its parts reads managed fields there.
func dropManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil && m.GetManagedFields() != nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}
