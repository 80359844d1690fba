// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/manager"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/test/envtest"
)

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"v": value}}
}

// state is what a reader sees of the config maps: name to UID and value.
func state(t *testing.T, r client.Reader) map[string]string {
	t.Helper()
	var list corev1.ConfigMapList
	if err := r.List(t.Context(), &list, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, cm := range list.Items {
		out[cm.Name] = fmt.Sprintf("%s %s", cm.UID, cm.Data["v"])
	}
	return out
}

// cached is the client of a manager that runs until the test ends.
func cached(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	m, err := manager.New(cfg, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if !m.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache does not sync")
	}
	return m.GetClient()
}

// TestRestoreUnderARunningManager changes, deletes and creates objects through a
// manager's client, whose reads come from its cache, and restores: reads past the
// cache see the old state at once, the cache's a moment later, and the manager's
// own writes are not shown any more. Twice, because a snapshot is for many tests.
func TestRestoreUnderARunningManager(t *testing.T) {
	env := &envtest.Environment{}
	cfg := start(t, env)
	live, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cm := range []*corev1.ConfigMap{configMap("kept", "1"), configMap("changed", "1"), configMap("deleted", "1")} {
		if err := live.Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
	c := cached(t, cfg)
	want := state(t, c)
	clean, err := env.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		changed := configMap("changed", "1")
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(changed), changed); err != nil {
			t.Fatal(err)
		}
		changed.Data["v"] = fmt.Sprint("other ", round)
		stuck := configMap("made", "9")
		stuck.Finalizers = []string{"example.com/forever"}
		if err := errors.Join(
			c.Update(t.Context(), changed),
			c.Delete(t.Context(), configMap("deleted", "")),
			c.Create(t.Context(), stuck),
			c.Delete(t.Context(), stuck),
		); err != nil {
			t.Fatal(err)
		}
		if got := state(t, c); len(got) != len(want) || got["made"] == "" || got["deleted"] != "" || got["changed"] == want["changed"] {
			t.Fatalf("before the restore: %v", got)
		}
		if err := env.Restore(t.Context(), clean); err != nil {
			t.Fatal(err)
		}
		if got := state(t, live); !maps.Equal(got, want) {
			t.Errorf("read live: %v, want %v", got, want)
		}
		eventually(t, "the cache sees the restored state", func() error {
			if got := state(t, c); !maps.Equal(got, want) {
				return fmt.Errorf("got %v, want %v", got, want)
			}
			return nil
		})
		var one corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(stuck), &one); !apierrors.IsNotFound(err) {
			t.Errorf("Get of what was made since: %v", err)
		}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "deleted"}, &one); err != nil || one.Data["v"] != "1" {
			t.Errorf("Get of what was deleted since: %v", err)
		}
	}
}

// TestRestoreOfKinds installs a CRD after the snapshot, and before it.
func TestRestoreOfKinds(t *testing.T) {
	env := &envtest.Environment{}
	cfg := start(t, env)
	before, err := env.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{Paths: []string{folder(t, map[string]string{"w.yaml": widgetCRD})}}); err != nil {
		t.Fatal(err)
	}
	with, err := env.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if with.Revision <= before.Revision {
		t.Errorf("revisions %d, then %d", before.Revision, with.Revision)
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		return clientset(t, cfg).RESTClient().Get().AbsPath("/apis/example.com/v1/widgets").Do(t.Context()).Error()
	}
	if err := c.Create(t.Context(), widget("w")); err != nil {
		t.Fatal(err)
	}
	if err := env.Restore(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if err := list(); !apierrors.IsNotFound(err) {
		t.Errorf("the kind is still served: %v", err)
	}
	if err := env.Restore(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	if err := list(); err != nil {
		t.Errorf("the kind is not served again: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(widget("w")), widget("w")); !apierrors.IsNotFound(err) {
		t.Errorf("what was made since: %v", err)
	}
}

func TestSnapshotErrors(t *testing.T) {
	env := &envtest.Environment{}
	_, err := env.Snapshot(t.Context())
	says(t, err, "Start")
	start(t, env)
	snapshot, err := env.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	says(t, env.Restore(t.Context(), snapshot), "no snapshot")
	says(t, snapshot.Forget(t.Context()), "no snapshot")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = env.Snapshot(cancelled)
	says(t, err, "canceled")
	if snapshot, err = env.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := env.Stop(); err != nil {
		t.Fatal(err)
	}
	says(t, env.Restore(t.Context(), snapshot), "Start")
	if _, err := env.Start(); err != nil {
		t.Fatal(err)
	}
	says(t, env.Restore(t.Context(), snapshot), "stopped", "each Start")
}
