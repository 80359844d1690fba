// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package controller_test runs controllers of every kind of watch on a real
// API server.
package controller_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log/zap"
	"github.com/wherry-dev/wherry/controller"
	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
	"github.com/wherry-dev/wherry/manager/config"
	"github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/test/envtest"
)

var (
	cfg    *rest.Config // reaches the server that all tests share
	scheme = runtime.NewScheme()
)

// startLimit is how long a server may take to be ready: it shares the machine with whatever else is being built.
const startLimit = 2 * time.Minute

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	env := &envtest.Environment{ControlPlaneStartTimeout: startLimit}
	var err error
	if cfg, err = env.Start(); err == nil {
		err = corev1.AddToScheme(scheme)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	return m.Run()
}

func newManager(t *testing.T) ctrl.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{CacheSyncTimeout: settle}})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// begin starts a manager, which ends with the test.
func begin(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
}

// passing creates an object that goes with the test: another run of it makes the same.
func passing(t *testing.T, c client.Client, obj client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), obj)); err != nil {
			t.Error(err)
		}
	})
}

// byName maps an object to a key that tells the object and its Go type.
func byName(prefix string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{named(fmt.Sprintf("%s %s %T", prefix, obj.GetName(), obj))}
	})
}

func named(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// settle is how long anything here may take; look is how often it is asked.
const (
	settle = time.Minute
	look   = 20 * time.Millisecond
)

// seen are the keys that one controller was given.
type seen struct {
	mu   sync.Mutex
	keys map[string]int
}

func (s *seen) Reconcile(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		s.keys = map[string]int{}
	}
	s.keys[req.Name]++
	return reconcile.Result{}, nil
}

func (s *seen) count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}

func (s *seen) want(t *testing.T, what, key string) {
	t.Helper()
	for deadline := time.Now().Add(settle); s.count(key) == 0; time.Sleep(look) {
		if time.Now().After(deadline) {
			s.mu.Lock()
			defer s.mu.Unlock()
			t.Fatalf("%s: %q was not reconciled within %s, but %v", what, key, settle, s.keys)
		}
	}
}

// TestEveryWatch builds one controller for every way to watch, on one manager,
// and wants each to be given the keys it asked for.
func TestEveryWatch(t *testing.T) {
	mgr := newManager(t)
	var forOwns, everyOwner, watches, metadata, both, raw, late seen
	events := make(chan event.GenericEvent, 1)
	for name, build := range map[string]func(*ctrl.Builder) error{
		"for-owns": func(b *ctrl.Builder) error {
			return b.For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(&forOwns)
		},
		"every-owner": func(b *ctrl.Builder) error {
			return b.For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}, builder.MatchEveryOwner).Complete(&everyOwner)
		},
		"watches": func(b *ctrl.Builder) error { return b.Watches(&corev1.ConfigMap{}, byName("w")).Complete(&watches) },
		"metadata": func(b *ctrl.Builder) error {
			return b.WatchesMetadata(&corev1.ServiceAccount{}, byName("m")).Complete(&metadata)
		},
		"both": func(b *ctrl.Builder) error {
			return b.Watches(&corev1.ConfigMap{}, byName("whole")).WatchesMetadata(&corev1.ConfigMap{}, byName("part")).Complete(&both)
		},
		"raw": func(b *ctrl.Builder) error {
			return b.WatchesRawSource(source.Channel(events, &handler.EnqueueRequestForObject{})).Complete(&raw)
		},
	} {
		if err := build(ctrl.NewControllerManagedBy(mgr).Named(name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	lateController, err := controller.New("late", mgr, controller.Options{Reconciler: &late})
	if err != nil {
		t.Fatal(err)
	}
	begin(t, mgr)

	c := mgr.GetClient()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	passing(t, c, owner)
	forOwns.want(t, "For", "owner")
	watches.want(t, "Watches", "w owner *v1.ConfigMap")
	both.want(t, "one kind in both forms, whole", "whole owner *v1.ConfigMap")
	both.want(t, "one kind in both forms, metadata", "part owner *v1.PartialObjectMetadata")
	for _, wrong := range []string{"whole owner *v1.PartialObjectMetadata", "part owner *v1.ConfigMap"} {
		if both.count(wrong) != 0 {
			t.Errorf("a handler was given the other form: %q", wrong)
		}
	}
	passing(t, c, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}})
	metadata.want(t, "WatchesMetadata", "m owner *v1.PartialObjectMetadata")
	events <- event.GenericEvent{Object: owner}
	raw.want(t, "WatchesRawSource", "owner")

	owned := func(name, owner string, isController bool) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: types.UID(owner + "-uid"), Controller: ptr.To(isController)},
		}}}
	}
	for _, s := range []*corev1.Secret{owned("one", "controls", true), owned("two", "owns", false)} {
		passing(t, c, s)
	}
	forOwns.want(t, "Owns", "controls")
	everyOwner.want(t, "Owns, every owner, controller", "controls")
	everyOwner.want(t, "Owns, every owner", "owns")
	if forOwns.count("owns") != 0 {
		t.Error("Owns was given an owner that is no controller")
	}

	if err := lateController.Watch(source.Kind(mgr.GetCache(), &corev1.ConfigMap{}, &handler.TypedEnqueueRequestForObject[*corev1.ConfigMap]{})); err != nil {
		t.Fatal(err)
	}
	late.want(t, "late Watch", "owner")
}
