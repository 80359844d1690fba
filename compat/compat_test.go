// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	wherryclient "github.com/wherry-dev/wherry/client"
	wherrymetrics "github.com/wherry-dev/wherry/manager/metrics"
	wherryserver "github.com/wherry-dev/wherry/manager/metrics/server"
	wherrywebhook "github.com/wherry-dev/wherry/webhook"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// An interface or a generic type of ours is upstream's of the same name: a
// value of the one is a value of the other.
var (
	_ client.Client                                          = wherryclient.Client(nil)
	_ predicate.TypedPredicate[*corev1.Pod]                  = predicate.TypedFuncs[*corev1.Pod]{}
	_ func(*rest.Config, ctrl.Options) (ctrl.Manager, error) = manager.New
)

// TestDefaultScheme: a program that gives no scheme gets client-go's, with all
// that it registered there.
func TestDefaultScheme(t *testing.T) {
	if s := fake.NewClientBuilder().Build().Scheme(); s != scheme.Scheme {
		t.Error("the fake client's default is not client-go's scheme")
	}
	c, err := client.New(&rest.Config{Host: "http://localhost:1"}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Scheme() != scheme.Scheme {
		t.Error("the client's default is not client-go's scheme")
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://localhost:1"}, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if mgr.GetScheme() != scheme.Scheme {
		t.Error("the manager's default is not client-go's scheme")
	}
}

// TestAssignedVariables: what a program assigns to a variable of this module
// reaches the package behind it by the time that it is read there.
func TestAssignedVariables(t *testing.T) {
	address, port, registry := metricsserver.DefaultBindAddress, webhook.DefaultPort, metrics.Registry
	t.Cleanup(func() {
		metricsserver.DefaultBindAddress, webhook.DefaultPort, metrics.Registry = address, port, registry
		webhook.NewServer(webhook.Options{})
	})
	check := func(wantAddress string, wantPort int, wantRegistry metrics.RegistererGatherer) {
		t.Helper()
		if wherryserver.DefaultBindAddress != wantAddress || wherrywebhook.DefaultPort != wantPort || wherrymetrics.Registry != wantRegistry {
			t.Errorf("behind are %q, %d and %p, want %q, %d and %p", wherryserver.DefaultBindAddress, wherrywebhook.DefaultPort,
				wherrymetrics.Registry, wantAddress, wantPort, wantRegistry)
		}
	}
	config := &rest.Config{Host: "http://localhost:1"}

	metricsserver.DefaultBindAddress = "0"
	mgr, err := ctrl.NewManager(config, ctrl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	check("0", port, registry)

	webhook.DefaultPort = 1234
	own := prometheus.NewRegistry()
	metrics.Registry = own
	if _, err := metricsserver.NewServer(metricsserver.Options{}, config, mgr.GetHTTPClient()); err != nil {
		t.Fatal(err)
	}
	check("0", 1234, own)

	// What the program did not assign here may have been assigned behind.
	wherryserver.DefaultBindAddress = ":1"
	webhook.NewServer(webhook.Options{})
	check(":1", 1234, own)
}

// TestForwardsAreVariables: programs put doubles in the place of what the root
// package offers as variables.
func TestForwardsAreVariables(t *testing.T) {
	defer func(f func(*rest.Config, ctrl.Options) (ctrl.Manager, error)) { ctrl.NewManager = f }(ctrl.NewManager)
	ctrl.NewManager = func(*rest.Config, manager.Options) (manager.Manager, error) { return nil, nil }
	if mgr, err := ctrl.NewManager(nil, ctrl.Options{}); mgr != nil || err != nil {
		t.Error("the double was not called")
	}
}
