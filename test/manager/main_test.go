// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager_test runs managers against the embedded API server.
package manager_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/manager"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/test/envtest"
)

// asReplica makes this test program be one replica of an operator, which a test can kill.
const asReplica = "WHERRY_TEST_REPLICA_OF"

// Timing of all elections: about two thirds of the defaults, which leaves room for a machine under load.
const (
	leaseDuration = 10 * time.Second
	renewDeadline = 7 * time.Second
	retryPeriod   = 400 * time.Millisecond
)

// startLimit is how long a server may take to be ready: it shares the machine with whatever else is being built.
const startLimit = 2 * time.Minute

// patience is how long anything else may take that must happen.
const patience = time.Minute

var (
	config *rest.Config // reaches the embedded server with every right
	live   client.Client
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	if kubeconfig := os.Getenv(asReplica); kubeconfig != "" {
		beReplica(kubeconfig)
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	env := &envtest.Environment{ControlPlaneStartTimeout: startLimit}
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
	if live, err = client.New(config, client.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// options are those of one replica of an operator with that lease.
func options(lease string) manager.Options {
	lasts, renews, retries := leaseDuration, renewDeadline, retryPeriod
	return manager.Options{
		Metrics:        metricsserver.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: lease, LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &lasts, RenewDeadline: &renews, RetryPeriod: &retries,
	}
}

// replica is a manager under way.
type replica struct {
	manager.Manager
	cancel context.CancelFunc
	ended  chan error
}

func start(t *testing.T, config *rest.Config, o manager.Options, runnables ...manager.Runnable) *replica {
	t.Helper()
	m, err := manager.New(config, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runnables {
		if err := m.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{m, cancel, make(chan error, 1)}
	go func() { r.ended <- m.Start(ctx) }()
	t.Cleanup(cancel)
	return r
}

// stop stops the replica and returns Start's error.
func (r *replica) stop() error {
	r.cancel()
	return <-r.ended
}

// awaitElection waits until r leads, and returns when it does.
func (r *replica) awaitElection(t *testing.T, limit time.Duration) time.Time {
	t.Helper()
	select {
	case <-r.Elected():
		return time.Now()
	case err := <-r.ended:
		t.Fatalf("ended before it led: %v", err)
	case <-time.After(limit):
		t.Fatalf("does not lead after %s", limit)
	}
	return time.Time{}
}

// eventually waits until ok is true, for limit at most.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not after %s: %s", limit, what)
		}
	}
}

// freeAddress is a loopback address that is free, and stays so for a while: its port is none of those that systems hand out
// to connections and listeners by themselves.
func freeAddress(t *testing.T) string {
	t.Helper()
	var err error
	for range 20 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(10000)))
		var free net.Listener
		if free, err = net.Listen("tcp", address); err == nil {
			_ = free.Close()
			return address
		}
	}
	t.Fatal(err)
	return ""
}

// uses counts the names that unique has made.
var uses atomic.Int64

// unique is a name that nothing on the server has had, by an earlier run of the test either.
func unique(name string) string { return fmt.Sprint(name, "-", uses.Add(1)) }

// configMap is one in the default namespace.
func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// alone fails the test if two runnables that share it run at one time.
type alone struct {
	t  *testing.T
	mu sync.Mutex
	by string
}

func (a *alone) as(name string) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		a.set("", name)
		<-ctx.Done()
		a.set(name, "")
		return nil
	})
}

func (a *alone) set(from, to string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by != from {
		a.t.Errorf("%q runs while %q is to become %q", a.by, from, to)
	}
	a.by = to
}
