// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager_test runs managers of both libraries side by side, on the
// embedded API server.
package manager_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/rest"
	upstreamlog "sigs.k8s.io/controller-runtime/pkg/log"
	upstream "sigs.k8s.io/controller-runtime/pkg/manager"
	upstreammetrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log"
	ours "github.com/wherry-dev/wherry/manager"
	ourmetrics "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/test/envtest"
)

const (
	leaseDuration = 10 * time.Second // the machine may do other things
	renewDeadline = 7 * time.Second
	retryPeriod   = 400 * time.Millisecond
)

// lease is what the replicas contend for.
var lease = client.ObjectKey{Namespace: "default", Name: "op"}

// replica is a manager of either library under way.
type replica struct {
	elected <-chan struct{}
	stop    func() error
}

func run(t *testing.T, elected <-chan struct{}, start func(context.Context) error) *replica {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	return &replica{elected, func() error {
		cancel()
		return <-ended
	}}
}

func ourReplica(t *testing.T, config *rest.Config, work func(context.Context) error) *replica {
	t.Helper()
	m, err := ours.New(config, ours.Options{
		Metrics:        ourmetrics.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: lease.Name, LeaderElectionNamespace: lease.Namespace, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(leaseDuration), RenewDeadline: new(renewDeadline), RetryPeriod: new(retryPeriod),
	})
	if err == nil {
		err = m.Add(ours.RunnableFunc(work))
	}
	if err != nil {
		t.Fatal(err)
	}
	return run(t, m.Elected(), m.Start)
}

func upstreamReplica(t *testing.T, config *rest.Config, work func(context.Context) error) *replica {
	t.Helper()
	m, err := upstream.New(config, upstream.Options{
		Metrics:        upstreammetrics.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: lease.Name, LeaderElectionNamespace: lease.Namespace, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: new(leaseDuration), RenewDeadline: new(renewDeadline), RetryPeriod: new(retryPeriod),
	})
	if err == nil {
		err = m.Add(upstream.RunnableFunc(work))
	}
	if err != nil {
		t.Fatal(err)
	}
	return run(t, m.Elected(), m.Start)
}

// alone fails the test if two elected runnables run at one time.
type alone struct {
	t  *testing.T
	mu sync.Mutex
	by string
}

func (a *alone) as(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		a.set("", name)
		<-ctx.Done()
		a.set(name, "")
		return nil
	}
}

func (a *alone) set(from, to string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.by != from {
		a.t.Errorf("%q runs while %q is to become %q", a.by, from, to)
	}
	a.by = to
}

// An operator's rolling migration: replicas of both libraries contend for one lease, and take turns.
func TestRollingMigration(t *testing.T) {
	log.SetLogger(logr.Discard())
	upstreamlog.SetLogger(logr.Discard())
	env := &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute} // it may share the machine
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	only := &alone{t: t}
	before := upstreamReplica(t, config, only.as("upstream 0"))
	<-before.elected
	for turn := range 4 {
		var next *replica
		if turn%2 == 0 {
			next = ourReplica(t, config, only.as(fmt.Sprint("ours ", turn)))
		} else {
			next = upstreamReplica(t, config, only.as(fmt.Sprint("upstream ", turn)))
		}
		time.Sleep(leaseDuration + time.Second) // longer than a lease that nobody renews
		select {
		case <-next.elected:
			t.Fatalf("turn %d: two lead", turn)
		default:
		}
		if err := before.stop(); err != nil {
			t.Errorf("turn %d: the replica before ended with %v", turn, err)
		}
		stopped := time.Now()
		select {
		case <-next.elected:
			t.Logf("turn %d: elected after %s", turn, time.Since(stopped).Round(time.Millisecond))
		case <-time.After(leaseDuration - 500*time.Millisecond):
			t.Fatalf("turn %d: the lease was not handed over", turn)
		}
		before = next
	}
	if err := before.stop(); err != nil {
		t.Error(err)
	}
	live, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &coordinationv1.Lease{}
	if err := live.Get(t.Context(), lease, l); err != nil || *l.Spec.HolderIdentity != "" || *l.Spec.LeaseTransitions != 4 {
		t.Errorf("lease at the end: %v, %+v", err, l.Spec)
	}
}
