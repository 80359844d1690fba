// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package resourcelock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/leaderelection"
	clientgolock "k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/wherry-dev/wherry/manager/leaderelection"
	"github.com/wherry-dev/wherry/manager/leaderelection/fake"
	"github.com/wherry-dev/wherry/manager/leaderelection/resourcelock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var timing = leaderelection.Timing{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}

func config(s *fake.LeaseServer) *rest.Config {
	return &rest.Config{Host: "https://server", Transport: s, QPS: -1}
}

// clientGoLock is the lock that an operator built on client-go has.
func clientGoLock(t *testing.T, s *fake.LeaseServer, id string) clientgolock.Interface {
	t.Helper()
	c := config(s)
	c.ContentType, c.AcceptContentTypes = "application/json", "application/json" // what the server of the test speaks
	client, err := coordinationclient.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return &clientgolock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lease"}, Client: client,
		LockConfig: clientgolock.ResourceLockConfig{Identity: id}, Labels: map[string]string{"theirs": "1"},
	}
}

func ourLock(t *testing.T, s *fake.LeaseServer) leaderelection.Lock {
	t.Helper()
	l, err := leaderelection.NewResourceLock(config(s), nil, leaderelection.Options{
		LeaderElection: true, LeaderElectionID: "lease", LeaderElectionNamespace: "ns", LeaderLabels: map[string]string{"ours": "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// theirTurn campaigns as a replica on client-go does, leads for d, and releases. It returns when it began and ended to lead.
func theirTurn(t *testing.T, ctx context.Context, s *fake.LeaseServer, d time.Duration) (began, ended time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e, err := clientgo.NewLeaderElector(clientgo.LeaderElectionConfig{
		Lock: clientGoLock(t, s, "theirs"), LeaseDuration: timing.LeaseDuration, RenewDeadline: timing.RenewDeadline, RetryPeriod: timing.RetryPeriod,
		ReleaseOnCancel: true,
		Callbacks: clientgo.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				began = time.Now()
				select {
				case <-time.After(d):
				case <-ctx.Done():
					t.Error("they lost the lease")
				}
				ended = time.Now()
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Error(err)
		return
	}
	e.Run(ctx)
	return began, ended
}

// ourTurn is the same for us, with lock.
func ourTurn(t *testing.T, ctx context.Context, lock leaderelection.Lock, d time.Duration) (began, ended time.Time) {
	e, err := leaderelection.NewElector(lock, timing, logr.Discard())
	if err != nil {
		t.Error(err)
		return
	}
	term, err := e.Campaign(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	began = time.Now()
	hold, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if err := e.Hold(hold, term); err != nil {
		t.Errorf("we lost the lease: %v", err)
	}
	ended = time.Now()
	term.End()
	if err := e.Release(ctx); err != nil {
		t.Error(err)
	}
	return began, ended
}

// A replica of ours and one on client-go take turns on one lease, as they do while an operator migrates.
func TestTakingTurnsWithClientGo(t *testing.T) {
	for _, c := range []struct {
		name string
		lock func(*testing.T, *fake.LeaseServer) leaderelection.Lock
	}{
		{"our lock", ourLock},
		{"a lock of client-go's", func(t *testing.T, s *fake.LeaseServer) leaderelection.Lock {
			return resourcelock.New(clientGoLock(t, s, "ours"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fake.LeaseServer{}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // or a lost turn would last for ever
				defer cancel()
				var last time.Time // when the one before ended
				for turn := range 3 {
					done := make(chan struct{})
					var began, ended time.Time
					go func() {
						defer close(done)
						time.Sleep(time.Second)
						began, ended = theirTurn(t, ctx, s, 40*time.Second)
					}()
					ourBegan, ourEnded := ourTurn(t, ctx, c.lock(t, s), 30*time.Second)
					<-done
					if ourBegan.Before(last) || ourBegan.After(last.Add(5*time.Second)) && turn > 0 {
						t.Errorf("turn %d: we began %s after they ended", turn, ourBegan.Sub(last))
					}
					// client-go waits up to 2.2 retry periods.
					if wait := began.Sub(ourEnded); wait < 0 || wait > 5*time.Second {
						t.Errorf("turn %d: they began %s after we ended", turn, wait)
					}
					last = ended
				}
				lease := s.Lease("ns", "lease")
				if *lease.Spec.HolderIdentity != "" || *lease.Spec.LeaseTransitions != 5 || lease.Labels["theirs"] != "1" {
					t.Errorf("lease: %+v, %v", lease.Spec, lease.Labels)
				}
			})
		})
	}
}

// Neither takes the lease of the other while that is alive, and each waits for the other's silence as long as the lease says.
func TestSilenceOfTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fake.LeaseServer{}
		e, err := leaderelection.NewElector(ourLock(t, s), timing, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		hold, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		limit, done2 := context.WithTimeout(t.Context(), time.Hour)
		defer done2()
		done := make(chan struct{})
		var began time.Time
		go func() {
			defer close(done)
			began, _ = theirTurn(t, limit, s, time.Second)
		}()
		if err := e.Hold(hold, term); err != nil {
			t.Fatal(err)
		}
		renewed := s.Lease("ns", "lease").Spec.RenewTime.Time
		<-done
		if wait := began.Sub(renewed); wait < 15*time.Second || wait > 24*time.Second {
			t.Errorf("they began %s after our last renewal", wait)
		}
		term.End()
	})
}
