// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/url"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client/log/zap"
	"github.com/wherry-dev/wherry/examples/replicaset/podwebhook"
	"github.com/wherry-dev/wherry/manager/metrics/filters"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/webhook"
	"github.com/wherry-dev/wherry/webhook/local"
)

const (
	leaseName = "replicaset.example.com"
	loopback  = "127.0.0.1"
	// webhooksOff is the port of a webhook server that is switched off.
	webhooksOff = -1
)

// settings are the flags. Those that every operator has bear the names by which kubebuilder's scaffold made them known.
type settings struct {
	force, sample bool

	metricsAddress                       string
	metricsSecure                        bool
	metricsCert, metricsName, metricsKey string
	probeAddress                         string
	leaderElect                          bool
	leaseNamespace                       string
	webhookPort                          int
	webhookCert, webhookName, webhookKey string
	http2                                bool
	logs                                 zap.Options
}

func newSettings(set *flag.FlagSet, args []string) (*settings, error) {
	s := &settings{logs: zap.Options{Development: true}}
	set.BoolVar(&s.force, "force", false, "Run even if the cluster's own ReplicaSet controller seems to be alive.")
	set.BoolVar(&s.sample, "sample", false, "Create the ReplicaSet default/web if it is absent, and say what to try with it.")
	set.StringVar(&s.metricsAddress, "metrics-bind-address", "0", "`ADDRESS` to serve metrics on, such as 127.0.0.1:8443; 0 serves none.")
	set.BoolVar(&s.metricsSecure, "metrics-secure", true, "Serve metrics over HTTPS, to readers who may get /metrics only.")
	set.StringVar(&s.metricsCert, "metrics-cert-path", "", "`FOLDER` of the certificate for metrics; without one, the server signs one itself.")
	set.StringVar(&s.metricsName, "metrics-cert-name", "tls.crt", "`FILE` of the certificate for metrics.")
	set.StringVar(&s.metricsKey, "metrics-cert-key", "tls.key", "`FILE` of the key for metrics.")
	set.StringVar(&s.probeAddress, "health-probe-bind-address", "0", "`ADDRESS` to serve /healthz and /readyz on, such as :8081; 0 serves none.")
	set.BoolVar(&s.leaderElect, "leader-elect", false, "Let one of several replicas work, and the others wait.")
	set.StringVar(&s.leaseNamespace, "leader-election-namespace", "default", "`NAMESPACE` of the lease.")
	set.IntVar(&s.webhookPort, "webhook-port", 0, "`PORT` of the webhooks; 0 is 9443 with a certificate and a free one without, -1 serves none.")
	set.StringVar(&s.webhookCert, "webhook-cert-path", "", "`FOLDER` of the certificate for webhooks, for a cluster whose webhook configurations are kept elsewhere. "+
		"Without one, an API server on this machine is told to call the webhooks here while the program runs.")
	set.StringVar(&s.webhookName, "webhook-cert-name", "tls.crt", "`FILE` of the certificate for webhooks.")
	set.StringVar(&s.webhookKey, "webhook-cert-key", "tls.key", "`FILE` of the key for webhooks.")
	set.BoolVar(&s.http2, "enable-http2", false, "Speak HTTP/2 where metrics and webhooks are served.")
	s.logs.BindFlags(set)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: it takes flags only (see -help)", set.Arg(0))
	}
	if s.webhookPort < webhooksOff || s.webhookPort > 65535 {
		return nil, fmt.Errorf("--webhook-port %d is no port: give one up to 65535, 0, or -1 for no webhooks", s.webhookPort)
	}
	return s, nil
}

// manager are the options that the flags ask for.
func (s *settings) manager() ctrl.Options {
	o := ctrl.Options{
		Metrics: metricsserver.Options{
			BindAddress: s.metricsAddress, SecureServing: s.metricsSecure,
			CertDir: s.metricsCert, CertName: s.metricsName, KeyName: s.metricsKey, TLSOpts: s.tls(),
		},
		HealthProbeBindAddress: s.probeAddress,
		LeaderElection:         s.leaderElect, LeaderElectionID: leaseName, LeaderElectionNamespace: s.leaseNamespace,
		LeaderElectionReleaseOnCancel: true, // main ends when the manager does
	}
	if s.metricsSecure {
		o.Metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return o
}

func (s *settings) tls() []func(*tls.Config) {
	if !s.http2 {
		return nil // off unless asked for
	}
	return []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} }}
}

// webhooks is how the webhooks are served: by the files of a cluster, or by ourselves for an API server on this machine, which is
// to be told then. A nil server means not at all.
func (s *settings) webhooks(host string) (webhook.Server, *local.Webhooks, error) {
	o := webhook.Options{Port: s.webhookPort, CertDir: s.webhookCert, CertName: s.webhookName, KeyName: s.webhookKey, TLSOpts: s.tls()}
	switch {
	case s.webhookPort == webhooksOff:
		return nil, nil, nil
	case s.webhookCert != "":
		return webhook.NewServer(o), nil, nil
	case !onThisMachine(host):
		ctrl.Log.Info("No webhooks: the API server is on another machine, and there is no --webhook-cert-path", "host", host)
		return nil, nil, nil
	}
	own, err := webhook.NewSelfSigned()
	if err != nil {
		return nil, nil, err
	}
	if o.Port == 0 {
		if o.Port, err = freePort(); err != nil {
			return nil, nil, err
		}
	}
	o.Host, o.TLSOpts = loopback, append(o.TLSOpts, own.TLS)
	server := webhook.NewServer(o)
	return server, &local.Webhooks{
		Server: server, Address: net.JoinHostPort(loopback, fmt.Sprint(o.Port)), CABundle: own.CABundle,
		Configurations: podwebhook.Configurations("default", "replicaset"),
	}, nil
}

// onThisMachine tells whether the API server at host is reached by a loopback address, so that it probably reaches ours.
func onThisMachine(host string) bool {
	at, err := url.Parse(host)
	if err != nil || at.Host == "" {
		at = &url.URL{Host: host}
	}
	return at.Hostname() == "localhost" || net.ParseIP(at.Hostname()).IsLoopback()
}

// freePort is a port that was free a moment ago: another program may take it before our server does, which then says so.
func freePort() (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a port for the webhooks: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
