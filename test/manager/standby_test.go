// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/manager"
)

// lists counts what a manager lists: a standby that is warm lists nothing when it takes over.
type lists struct {
	next  http.RoundTripper
	count *atomic.Int64
}

func (l *lists) RoundTrip(req *http.Request) (*http.Response, error) {
	// A watch that begins with the objects is a list as well.
	watch, streamed := req.URL.Query().Get("watch") != "", req.URL.Query().Get("sendInitialEvents") != ""
	if req.Method == http.MethodGet && strings.HasSuffix(req.URL.Path, "/configmaps") && (!watch || streamed) {
		l.count.Add(1)
	}
	return l.next.RoundTrip(req)
}

// greeted notes when each object was reconciled first.
type greeted struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (g *greeted) Reconcile(_ context.Context, req ctrl.Request) (ctrl.Result, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at[req.Name].IsZero() {
		g.at[req.Name] = time.Now()
	}
	return ctrl.Result{}, nil
}

func (g *greeted) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.at)
}

// standby starts a replica with a warm controller of the ConfigMaps of one namespace, and counts its lists of them.
func standby(t *testing.T, counter *atomic.Int64) (*replica, *greeted) {
	t.Helper()
	own := rest.CopyConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return &lists{next, counter} })
	o := options("standby")
	o.Controller.EnableWarmup = ptr.To(true)
	o.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{"default": {}}}}
	m, err := manager.New(own, o)
	if err != nil {
		t.Fatal(err)
	}
	g := &greeted{at: map[string]time.Time{}}
	if err := ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(g); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{m, cancel, make(chan error, 1)}
	go func() { r.ended <- m.Start(ctx) }()
	t.Cleanup(cancel)
	return r, g
}

// A replica that waits for the lease has its caches and queue filled: taking over needs no list, and is quick.
func TestWarmStandby(t *testing.T) {
	const objects = 200
	for i := range objects {
		if err := client.IgnoreAlreadyExists(live.Create(t.Context(), configMap(fmt.Sprint("standby-", i)))); err != nil {
			t.Fatal(err)
		}
	}
	var ofLeader, ofNext atomic.Int64
	leader, _ := standby(t, &ofLeader)
	leader.awaitElection(t, patience)
	next, seen := standby(t, &ofNext)
	eventually(t, patience, "the standby's cache is filled", func() bool {
		var all corev1.ConfigMapList
		return ofNext.Load() > 0 && next.GetCache().List(t.Context(), &all, client.InNamespace("default")) == nil && len(all.Items) >= objects
	})
	time.Sleep(2 * retryPeriod) // nothing tells that a standby goes on waiting
	if n := seen.count(); n != 0 {
		t.Errorf("the standby reconciled %d objects", n)
	}
	before := ofNext.Load()
	if err := leader.stop(); err != nil {
		t.Error(err)
	}
	elected := next.awaitElection(t, patience)
	eventually(t, patience, "everything is reconciled", func() bool { return seen.count() >= objects })
	t.Logf("%d objects reconciled %s after the election", seen.count(), time.Since(elected).Round(time.Millisecond))
	if n := ofNext.Load() - before; n != 0 {
		t.Errorf("taking over took %d lists", n)
	}
	if err := next.stop(); err != nil {
		t.Error(err)
	}
}
