// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/config"
)

// fakeManager is a manager that only takes runnables.
type fakeManager struct {
	manager.Manager
	client  *http.Client
	config  config.Controller
	added   []manager.Runnable
	refuses error
}

func (m *fakeManager) GetHTTPClient() *http.Client             { return m.client }
func (m *fakeManager) GetControllerOptions() config.Controller { return m.config }
func (m *fakeManager) GetLogger() logr.Logger                  { return logr.Discard() }

func (m *fakeManager) Add(r manager.Runnable) error {
	if m.refuses != nil {
		return m.refuses
	}
	m.added = append(m.added, r)
	return nil
}

// wrapper is what users put around a manager.
type wrapper struct{ manager.Manager }

var nop = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })

// TestNames is pain 33: names are unique in a manager, not in the process, and
// free again when the controller has stopped.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yes := true
		one, two := &fakeManager{client: &http.Client{}}, &fakeManager{client: &http.Client{}}
		first, err := New("c", one, Options{Reconciler: nop})
		if err != nil {
			t.Fatal(err)
		}
		for name, m := range map[string]manager.Manager{"the same manager": one, "a wrapper around it": wrapper{one}} {
			if _, err := New("c", m, Options{Reconciler: nop}); err == nil {
				t.Errorf("%s takes the name twice", name)
			}
		}
		for name, err := range map[string]error{
			"another name":    errOf(New("d", one, Options{Reconciler: nop})),
			"another manager": errOf(New("c", two, Options{Reconciler: nop})),
			"the switch":      errOf(New("c", one, Options{Reconciler: nop, SkipNameValidation: &yes})),
			"unmanaged":       errOf(NewUnmanaged("c", Options{Reconciler: nop})),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		end := begin(t, first)
		if err := end(); err != nil {
			t.Fatal(err)
		}
		second, err := New("c", one, Options{Reconciler: nop})
		if err != nil {
			t.Errorf("the name of a stopped controller is not free: %v", err)
		}
		if err := first.Start(t.Context()); err == nil {
			t.Error("a stopped controller starts again although its name is taken")
		}
		end = begin(t, second)
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := begin(t, first)(); err != nil {
			t.Errorf("it does not start again although its name is free: %v", err)
		}
	})
}

func errOf(_ Controller, err error) error { return err }

// TestNamesSwitchOfManager wants the manager's switch to count.
func TestNamesSwitchOfManager(t *testing.T) {
	yes := true
	m := &fakeManager{client: &http.Client{}, config: config.Controller{SkipNameValidation: &yes}}
	for range 2 {
		if _, err := New("c", m, Options{Reconciler: nop}); err != nil {
			t.Error(err)
		}
	}
	if len(m.added) != 2 {
		t.Errorf("the manager got %d runnables, want 2", len(m.added))
	}
}

// TestNamesOfRefused wants a controller that the manager refuses to give its
// name back.
func TestNamesOfRefused(t *testing.T) {
	m := &fakeManager{client: &http.Client{}, refuses: errors.New("stopped")}
	if _, err := New("c", m, Options{Reconciler: nop}); !errors.Is(err, m.refuses) {
		t.Errorf("New returned %v, want the manager's error", err)
	}
	m.refuses = nil
	if _, err := New("c", m, Options{Reconciler: nop}); err != nil {
		t.Error(err)
	}
}

// TestNamesAreForgotten wants a manager that is gone to leave no names behind.
func TestNamesAreForgotten(t *testing.T) {
	if _, err := New("c", &fakeManager{client: &http.Client{Timeout: time.Second}}, Options{Reconciler: nop}); err != nil {
		t.Fatal(err)
	}
	before := managersKnown()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		runtime.GC() // what it finds is told by a goroutine of the runtime's own
		if managersKnown() < before {
			return
		}
	}
	t.Errorf("%d managers are known, and none is forgotten", managersKnown())
}

func managersKnown() int {
	names.Lock()
	defer names.Unlock()
	return len(names.byManager)
}

// TestDefaults wants what the manager says to count where the controller says
// nothing, and the built-in defaults where neither does.
func TestDefaults(t *testing.T) {
	yes, no := true, false
	given := config.Controller{
		MaxConcurrentReconciles: 7, CacheSyncTimeout: time.Hour, RecoverPanic: &no, NeedLeaderElection: &no,
		EnableWarmup: &yes, UsePriorityQueue: &no, ReconciliationTimeout: time.Minute,
	}
	o := Options{Reconciler: nop}
	o.DefaultFromConfig(given)
	if err := o.settle("c"); err != nil {
		t.Fatal(err)
	}
	if o.MaxConcurrentReconciles != 7 || o.CacheSyncTimeout != time.Hour || *o.RecoverPanic || *o.NeedLeaderElection || !*o.EnableWarmup || *o.UsePriorityQueue || o.ReconciliationTimeout != time.Minute {
		t.Errorf("the manager's settings do not count: %+v", o)
	}
	o = Options{Reconciler: nop, MaxConcurrentReconciles: 2, CacheSyncTimeout: time.Second, RecoverPanic: &yes, NeedLeaderElection: &yes, EnableWarmup: &no, UsePriorityQueue: &yes, ReconciliationTimeout: -1}
	o.DefaultFromConfig(given)
	if o.MaxConcurrentReconciles != 2 || o.CacheSyncTimeout != time.Second || !*o.RecoverPanic || !*o.NeedLeaderElection || *o.EnableWarmup || !*o.UsePriorityQueue || o.ReconciliationTimeout != -1 {
		t.Errorf("the controller's settings do not come first: %+v", o)
	}
	o = Options{Reconciler: nop}
	o.DefaultFromConfig(config.Controller{})
	if err := o.settle("c"); err != nil {
		t.Fatal(err)
	}
	if o.MaxConcurrentReconciles != 1 || o.CacheSyncTimeout != 2*time.Minute || !*o.RecoverPanic || !*o.NeedLeaderElection || *o.EnableWarmup || !*o.UsePriorityQueue || o.ReconciliationTimeout != 0 {
		t.Errorf("the defaults are %+v", o)
	}
	for i, want := range []time.Duration{5, 10, 20} {
		if d := o.RateLimiter.When(request("p")); d != want*time.Millisecond {
			t.Errorf("the delay after %d failures is %s, want %dms", i, d, want)
		}
	}
}
