// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/wherry-dev/wherry/webhook"
)

func parse(t *testing.T, args ...string) *settings {
	t.Helper()
	s, err := newSettings(flag.NewFlagSet("replicaset", flag.ContinueOnError), args)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestManagerOptions(t *testing.T) {
	o := parse(t).manager()
	if o.Metrics.BindAddress != "0" || o.HealthProbeBindAddress != "0" || o.LeaderElection {
		t.Errorf("without flags: %+v", o)
	}
	o = parse(t, "--metrics-bind-address=:8443", "--metrics-cert-path=/certs", "--metrics-cert-name=a", "--metrics-cert-key=b",
		"--health-probe-bind-address=:8081", "--leader-elect", "--leader-election-namespace=ops").manager()
	if o.Metrics.BindAddress != ":8443" || !o.Metrics.SecureServing || o.Metrics.FilterProvider == nil || len(o.Metrics.TLSOpts) > 0 ||
		o.Metrics.CertDir != "/certs" || o.Metrics.CertName != "a" || o.Metrics.KeyName != "b" {
		t.Errorf("metrics: %+v", o.Metrics)
	}
	if o.HealthProbeBindAddress != ":8081" || !o.LeaderElection || o.LeaderElectionNamespace != "ops" || o.LeaderElectionID == "" {
		t.Errorf("probes and election: %+v", o)
	}
	o = parse(t, "--metrics-bind-address=:8080", "--metrics-secure=false", "--enable-http2").manager()
	if o.Metrics.SecureServing || o.Metrics.FilterProvider != nil || len(o.Metrics.TLSOpts) != 1 {
		t.Errorf("metrics: %+v", o.Metrics)
	}
}

func TestWebhooks(t *testing.T) {
	for name, c := range map[string]struct {
		host          string
		args          []string
		served, local bool
		port          int // 0 for any that is free
	}{
		"an API server on this machine": {"https://127.0.0.1:6443", nil, true, true, 0},
		"the same without a scheme":     {"localhost:6443", nil, true, true, 0},
		"IPv6":                          {"https://[::1]:6443", nil, true, true, 0},
		"a port of ours":                {"https://127.0.0.1:6443", []string{"--webhook-port=9444"}, true, true, 9444},
		"an API server elsewhere":       {"https://10.0.0.1:443", nil, false, false, 0},
		"the same, with a certificate":  {"https://10.0.0.1:443", []string{"--webhook-cert-path=/certs"}, true, false, 0},
		"here, with a certificate":      {"https://127.0.0.1:6443", []string{"--webhook-cert-path=/certs"}, true, false, 0},
		"off":                           {"https://127.0.0.1:6443", []string{"--webhook-port=-1"}, false, false, 0},
	} {
		server, configurations, err := parse(t, c.args...).webhooks(c.host)
		if err != nil {
			t.Fatal(err)
		}
		if (server != nil) != c.served || (configurations != nil) != c.local {
			t.Errorf("%s: served %v, told to the API server %v", name, server != nil, configurations != nil)
		}
		if server == nil {
			continue
		}
		o := server.(*webhook.DefaultServer).Options
		switch {
		case c.local && (o.Host != loopback || o.Port == 0 || len(o.TLSOpts) == 0):
			t.Errorf("%s: %+v", name, o)
		case c.port != 0 && o.Port != c.port:
			t.Errorf("%s: port %d", name, o.Port)
		case !c.local && o.CertDir != "/certs":
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, `unexpected argument "run"`},
		{[]string{"--webhook-port=-2"}, "--webhook-port -2 is no port"},
		{[]string{"--webhook-port=70000"}, "--webhook-port 70000 is no port"},
		{[]string{"--metrics=1"}, "not defined: -metrics"},
	} {
		set := flag.NewFlagSet("replicaset", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		if _, err := newSettings(set, c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}
