// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/server/healthz"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane/reconcilers"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/wherry-dev/wherry/test/apiserver/facade"
	"github.com/wherry-dev/wherry/test/apiserver/identity"
	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

const (
	loopback   = "127.0.0.1"
	serverName = "kubernetes"
	// serviceRange is where ClusterIPs come from: the range envtest uses, and nothing is ever routed there.
	serviceRange = "10.0.0.0/24"
	// issuer is what service account tokens name as their maker.
	issuer = "https://kubernetes.default.svc.cluster.local"
)

// parts are what a server is put together from.
type parts struct {
	options  Options
	identity *identity.Identity
	store    *file.Store
	facade   *facade.Facade
	listener *listener
	informer *cache.InformerName
	flags    options.CompletedOptions
	stopEtcd func()                       // nil unless there is one
	prefixes serverstorage.StorageFactory // knows under which keys a resource is; nil with Stock
}

// keyPrefix returns the part of a resource's keys between "/registry/" and the object's namespace or name.
func (p *parts) keyPrefix(resource, group string) string {
	if p.prefixes == nil {
		return resource
	}
	return strings.Trim(p.prefixes.ResourcePrefix(schema.GroupResource{Group: group, Resource: resource}), "/")
}

// complete settles kube-apiserver's own options.
func (p *parts) complete(ctx context.Context) error {
	o := options.NewServerRunOptions()
	defaults(o)
	if err := p.parse(o); err != nil {
		return err
	}
	o.GenericServerRunOptions.AdvertiseAddress = net.ParseIP(loopback)
	o.EndpointReconcilerType = string(reconcilers.NoneEndpointReconcilerType)
	o.InformerName = p.informer

	if err := p.backend(o); err != nil {
		return err
	}

	o.Authentication.Anonymous.Allow = false
	o.Authentication.Anonymous.FlagsSet = true
	var err error
	if o.Authentication.ClientCert.CAContentProvider, err = p.clientCA(o.Authentication.ClientCert.ClientCA); err != nil {
		return err
	}
	if len(o.Authentication.ServiceAccounts.Issuers) == 0 {
		o.Authentication.ServiceAccounts.Issuers = []string{issuer}
	}
	key := p.identity.ServiceAccountKey()
	if o.ServiceAccountIssuer, err = serviceaccount.JWTTokenGenerator(o.Authentication.ServiceAccounts.Issuers[0], key); err != nil {
		return fmt.Errorf("make the signer of service account tokens: %w", err)
	}
	o.Authentication.ServiceAccounts.ExternalPublicKeysGetter, err = serviceaccount.StaticPublicKeysGetter([]any{key.Public()})
	if err != nil {
		return fmt.Errorf("make the verifier of service account tokens: %w", err)
	}

	// Without a port Complete makes no certificate: it would make a slow one, and in a file.
	o.SecureServing.BindPort = 0
	if p.flags, err = o.Complete(ctx); err != nil {
		return fmt.Errorf("settle kube-apiserver's options: %w", err)
	}
	if err := p.serve(); err != nil {
		return err
	}
	if errs := p.flags.Validate(); len(errs) > 0 {
		return fmt.Errorf("kube-apiserver refuses its options: %w", utilerrors.NewAggregate(errs))
	}
	return nil
}

// defaults are what this server differs in from kube-apiserver and a flag may change.
func defaults(o *options.ServerRunOptions) {
	o.AllowPrivileged = true
	o.Authentication.BootstrapToken.Enable = false
	o.Authorization.Modes = []string{"RBAC"}
	o.GenericServerRunOptions.ExternalHost = loopback
	// A server that stops ends its watches at once instead of waiting for their clients.
	o.GenericServerRunOptions.ShutdownWatchTerminationGracePeriod = watchGrace
	o.ServiceClusterIPRanges = serviceRange
}

// clientCA is who may issue client certificates: our own authority and, if client-ca-file names one, that too.
func (p *parts) clientCA(path string) (dynamiccertificates.CAContentProvider, error) {
	own, err := dynamiccertificates.NewStaticCAContent("client-ca", p.identity.CA())
	if err != nil {
		return nil, fmt.Errorf("use the certificate authority: %w", err)
	}
	if path == "" {
		return own, nil
	}
	given, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca-file", path)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver flag client-ca-file: %w", err)
	}
	return dynamiccertificates.NewUnionCAContentProvider(own, given), nil
}

// backend settles what the storage is.
func (p *parts) backend(o *options.ServerRunOptions) error {
	if p.options.Etcd {
		endpoint, stop, err := startEtcd()
		if err != nil {
			return err
		}
		p.stopEtcd = stop
		o.Etcd.StorageConfig.Transport.ServerList = []string{endpoint}
		return nil
	}
	o.Etcd.StorageConfig.Transport.ServerList = []string{facade.Endpoint}
	o.Etcd.SkipHealthEndpoints = true
	o.Etcd.EnableWatchCache = false
	o.Etcd.StorageConfig.CompactionInterval = 0
	return nil
}

// parse applies the flags the caller handed over, before anything this package insists on.
func (p *parts) parse(o *options.ServerRunOptions) error {
	if len(p.options.Flags) == 0 {
		return nil
	}
	named := o.Flags()
	for _, f := range p.options.Flags {
		name, value, _ := strings.Cut(f, "=")
		found := false
		for _, set := range named.FlagSets {
			if set.Lookup(name) == nil {
				continue
			}
			found = true
			if err := set.Set(name, value); err != nil {
				return fmt.Errorf("kube-apiserver flag %s: %w", f, err)
			}
		}
		if !found {
			return fmt.Errorf("kube-apiserver has no flag %q", name)
		}
	}
	return nil
}

// serve hands over listener and certificate. The certificate bears the name the server's own clients ask for too, so
// it needs no second one for them.
func (p *parts) serve() error {
	cert, key, err := p.identity.Serving([]string{
		"localhost", serverName, serverName + ".default", serverName + ".default.svc", loopbackName,
	}, net.ParseIP(loopback), net.IPv6loopback)
	if err != nil {
		return err
	}
	s := p.flags.SecureServing
	if s.ServerCert.GeneratedCert, err = dynamiccertificates.NewStaticCertKeyContent("serving", cert, key); err != nil {
		return fmt.Errorf("use the serving certificate: %w", err)
	}
	s.Listener = p.listener
	s.BindAddress = net.ParseIP(loopback)
	s.BindPort = p.listener.Addr().(*net.TCPAddr).Port

	if p.options.Etcd {
		return nil
	}
	dial := p.facade.Dial
	p.flags.Etcd.StorageConfig.Transport.EgressLookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) {
		return dial, nil
	}
	return nil
}

// chain puts the server together: extensions, Kubernetes' own APIs, aggregation, each over our storage.
func (p *parts) chain() (*aggregator.APIAggregator, *app.Config, error) {
	config, err := p.config()
	if err != nil {
		return nil, nil, err
	}
	if !p.options.Etcd {
		p.wrapStorage(config)
	}
	if !p.options.Stock {
		config.KubeAPIs.ControlPlane.Generic.DisabledPostStartHooks.Insert(seededHooks...)
		// The two other servers were configured before this is set: they describe themselves, which costs next to nothing.
		config.KubeAPIs.ControlPlane.Generic.SkipOpenAPIInstallation = true
	}
	v2, v3 := config.KubeAPIs.ControlPlane.Generic.OpenAPIConfig, config.KubeAPIs.ControlPlane.Generic.OpenAPIV3Config
	completed, err := config.Complete()
	if err != nil {
		return nil, nil, fmt.Errorf("complete the server's configuration: %w", err)
	}
	chain, err := app.CreateServerChain(completed)
	if err != nil {
		return nil, nil, fmt.Errorf("put the server together: %w", err)
	}
	chain.GenericAPIServer.ShutdownTimeout = drainLimit
	// A store that may not write any more still reads: the server goes on, and says why it is not ready.
	if err := chain.GenericAPIServer.AddReadyzChecks(healthz.NamedCheck("storage", func(*http.Request) error {
		return p.store.Failure()
	})); err != nil {
		return nil, nil, fmt.Errorf("add the storage to what readiness means: %w", err)
	}
	if !p.options.Stock {
		kube, ok := chain.GenericAPIServer.NextDelegate().(*genericapiserver.GenericAPIServer)
		if !ok {
			return nil, nil, errors.New("the server of Kubernetes' own APIs is not where it used to be: use Stock")
		}
		if err := describe(kube, v2, v3); err != nil {
			return nil, nil, err
		}
	}
	return chain, config, nil
}

// gates are the feature gates this server differs in, and why.
var gates = map[featuregate.Feature]bool{
	// It keeps leases in etcd for other servers to find this one. There are no others.
	"UnknownVersionInteroperabilityProxy": false,
	// It renews a lease every ten seconds for the same reason: an idle server would never stop writing.
	"APIServerIdentity": false,
}
