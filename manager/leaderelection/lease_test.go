// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/wherry-dev/wherry/cluster/recorder"
	"github.com/wherry-dev/wherry/manager/leaderelection"
	"github.com/wherry-dev/wherry/manager/leaderelection/fake"
)

func config(s *fake.LeaseServer) *rest.Config {
	return &rest.Config{Host: "https://server", Transport: s, QPS: -1, UserAgent: "operator"}
}

func TestNewResourceLock(t *testing.T) {
	for _, c := range []struct {
		name string
		o    leaderelection.Options
		err  string
	}{
		{"off", leaderelection.Options{}, ""},
		{"on", leaderelection.Options{LeaderElection: true, LeaderElectionID: "x", LeaderElectionNamespace: "n"}, ""},
		{"named", leaderelection.Options{LeaderElection: true, LeaderElectionID: "x", LeaderElectionNamespace: "n", LeaderElectionResourceLock: "leases"}, ""},
		{"unknown lock", leaderelection.Options{LeaderElection: true, LeaderElectionID: "x", LeaderElectionNamespace: "n", LeaderElectionResourceLock: "configmaps"}, `"configmaps"`},
		{"no ID", leaderelection.Options{LeaderElection: true, LeaderElectionNamespace: "n"}, "LeaderElectionID must be configured"},
		{"no namespace", leaderelection.Options{LeaderElection: true, LeaderElectionID: "x"}, "set LeaderElectionNamespace"},
	} {
		lock, err := leaderelection.NewResourceLock(config(&fake.LeaseServer{}), nil, c.o)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
		case err != nil || (lock != nil) != c.o.LeaderElection:
			t.Errorf("%s: %v, %v", c.name, lock, err)
		}
	}
}

func TestIdentity(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	shape := regexp.MustCompile("^" + regexp.QuoteMeta(host) + "_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
	seen := map[string]bool{}
	for range 2 {
		lock, err := leaderelection.NewResourceLock(config(&fake.LeaseServer{}), nil, leaderelection.Options{LeaderElection: true, LeaderElectionID: "x", LeaderElectionNamespace: "n"})
		if err != nil {
			t.Fatal(err)
		}
		if id := lock.Identity(); !shape.MatchString(id) || seen[id] {
			t.Errorf("identity %q", id)
		} else {
			seen[id] = true
		}
		if lock.Describe() != "n/x" {
			t.Errorf("described as %q", lock.Describe())
		}
	}
}

// provider hands out a recorder that keeps events.
type provider struct{ events []string }

func (p *provider) GetEventRecorderFor(string) record.EventRecorder { return &keeper{p: p} }
func (p *provider) GetEventRecorder(string) recorder.EventRecorder  { return nil }

type keeper struct {
	record.EventRecorder
	p *provider
}

func (k *keeper) Eventf(obj runtime.Object, kind, reason, format string, args ...any) {
	lease := obj.(*coordinationv1.Lease)
	k.p.events = append(k.p.events, fmt.Sprintf("%s %s/%s %s %s %s", obj.GetObjectKind().GroupVersionKind().Kind, lease.Namespace, lease.Name, kind, reason, fmt.Sprintf(format, args...)))
}

// The whole life of a lease over REST: what is written, and that nothing foreign is lost.
func TestLeaseOverREST(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := &fake.LeaseServer{}, &provider{}
		lock, err := leaderelection.NewResourceLock(config(s), p, leaderelection.Options{
			LeaderElection: true, LeaderElectionID: "x", LeaderElectionNamespace: "n", LeaderLabels: map[string]string{"app": "op"},
		})
		if err != nil {
			t.Fatal(err)
		}
		e, err := leaderelection.NewElector(lock, leaderelection.Timing{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now().UTC()
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		spec, err := json.Marshal(s.Lease("n", "x").Spec)
		if err != nil {
			t.Fatal(err)
		}
		at := start.Format(metav1.RFC3339Micro)
		want := fmt.Sprintf(`{"holderIdentity":%q,"leaseDurationSeconds":15,"acquireTime":%q,"renewTime":%q,"leaseTransitions":0}`, lock.Identity(), at, at)
		if string(spec) != want {
			t.Errorf("created %s\nwant    %s", spec, want)
		}

		// Somebody adds what is not ours.
		foreign := s.Lease("n", "x")
		foreign.Labels["theirs"], foreign.Annotations = "1", map[string]string{"note": "2"}
		foreign.Spec.PreferredHolder, foreign.Spec.Strategy = new("them"), new(coordinationv1.OldestEmulationVersion)
		foreign.OwnerReferences = []metav1.OwnerReference{{Name: "owner"}}
		s.Put(foreign)

		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := e.Hold(ctx, term); err != nil {
			t.Fatal(err)
		}
		term.End()
		if err := e.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := s.Lease("n", "x")
		if got.Labels["app"] != "op" || got.Labels["theirs"] != "1" || got.Annotations["note"] != "2" || len(got.OwnerReferences) != 1 {
			t.Errorf("labels, annotations or owners were lost: %+v", got.ObjectMeta)
		}
		if got.Spec.PreferredHolder == nil || *got.Spec.PreferredHolder != "them" || got.Spec.Strategy == nil {
			t.Errorf("coordinated election's fields were lost: %+v", got.Spec)
		}
		if *got.Spec.HolderIdentity != "" || *got.Spec.LeaseDurationSeconds != 1 || *got.Spec.LeaseTransitions != 0 {
			t.Errorf("released: %+v", got.Spec)
		}
		events := []string{
			"Lease n/x Normal LeaderElection " + lock.Identity() + " became leader",
			"Lease n/x Normal LeaderElection " + lock.Identity() + " stopped leading",
		}
		if strings.Join(p.events, "\n") != strings.Join(events, "\n") {
			t.Errorf("events:\n%s", strings.Join(p.events, "\n"))
		}
		for _, write := range s.Writes() {
			if !strings.HasSuffix(write.UserAgent, "/leader-election") {
				t.Errorf("user agent %q", write.UserAgent)
			}
		}
	})
}

func TestLeaseErrors(t *testing.T) {
	s := &fake.LeaseServer{}
	lock, err := leaderelection.NewResourceLock(config(s), nil, leaderelection.Options{LeaderElection: true, LeaderElectionID: "x", LeaderElectionNamespace: "n"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	r := leaderelection.Record{HolderIdentity: "me", LeaseDurationSeconds: 1}
	if err := lock.Update(ctx, r); err == nil {
		t.Error("updated before it was read")
	}
	if _, err := lock.Get(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("get: %v", err)
	}
	if err := lock.Create(ctx, r); err != nil {
		t.Errorf("create: %v", err)
	}
	if err := lock.Create(ctx, r); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create again: %v", err)
	}
	s.Put(s.Lease("n", "x"))
	if err := lock.Update(ctx, r); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := lock.Get(cancelled); err == nil {
		t.Error("got with a cancelled context")
	}
}
