// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/cluster"
	"github.com/wherry-dev/wherry/test/envtest"
)

// startLimit is how long a server may take to be ready: it shares the machine with whatever else is being built.
const startLimit = 2 * time.Minute

// settle is how long anything else may take that must happen.
const settle = time.Minute

// The server that all tests share but TestModel, which restarts its own. Each test works in namespaces of its own.
var (
	config *rest.Config // reaches it with every right
	scheme = runtime.NewScheme()
	live   client.WithWatch // writes as another client than that under test, and reads the truth
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, apiextensionsv1.AddToScheme, addWidget} {
		if err := add(scheme); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	env := &envtest.Environment{ControlPlaneStartTimeout: startLimit, CRDs: []*apiextensionsv1.CustomResourceDefinition{definition("widgets", "Widget")}}
	var err error
	if config, err = env.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	config.QPS = -1
	if live, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// newCluster makes a cluster whose client reads its own writes, in all forms, from the cache.
func newCluster(t *testing.T, cfg *rest.Config, opts ...cluster.Option) cluster.Cluster {
	t.Helper()
	c, err := cluster.New(cfg, append([]cluster.Option{func(o *cluster.Options) {
		o.Scheme = scheme
		o.Client.Cache = &client.CacheOptions{Unstructured: true}
	}}, opts...)...)
	must(t, err)
	return c
}

// begin starts a cluster, which ends with the test.
func begin(t *testing.T, c cluster.Cluster) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if !c.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not start")
	}
}

// start makes and starts a cluster.
func start(t *testing.T, cfg *rest.Config, opts ...cluster.Option) cluster.Cluster {
	t.Helper()
	c := newCluster(t, cfg, opts...)
	begin(t, c)
	return c
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// eventually waits until ok is true, for limit at most.
func eventually(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", limit, what)
		}
	}
}

// namespace makes a namespace of the test's own. It is left to the server, which ends with the tests.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	must(t, live.Create(t.Context(), ns))
	return ns.Name
}
