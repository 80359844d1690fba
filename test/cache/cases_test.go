// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/cluster"
	"github.com/wherry-dev/wherry/test/envtest"
)

// serve starts a server that ends with the test.
func serve(t *testing.T) *rest.Config {
	t.Helper()
	env := &envtest.Environment{}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cfg
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func configMap(ns, name, l string, finalizers ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"l": l}, Finalizers: finalizers}}
}

// shown lists ConfigMaps that carry the label l, as "name" or, while they are being deleted, "name!".
func shown(t *testing.T, r client.Reader, opts ...client.ListOption) string {
	t.Helper()
	var list corev1.ConfigMapList
	must(t, r.List(t.Context(), &list, append(opts, client.HasLabels{"l"})...))
	var out []string
	for _, m := range list.Items {
		name := m.Namespace + "/" + m.Name
		if m.DeletionTimestamp != nil {
			name += "!"
		}
		out = append(out, name)
	}
	return fmt.Sprint(out)
}

func eventually(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", limit, what)
		}
	}
}

// CL-1 (4): the list right after a DeleteAllOf shows exactly what is left, and never goes back.
func TestListAfterDeleteAllOf(t *testing.T) {
	c := start(t, serve(t)).GetClient()
	must(t, c.Create(t.Context(), namespace("a")), c.Create(t.Context(), namespace("b")))
	if got := shown(t, c); got != "[]" {
		t.Fatal(got)
	}
	for range 5 {
		for _, m := range []*corev1.ConfigMap{configMap("a", "k1", "1"), configMap("a", "k2", "1", finalizer), configMap("a", "k3", "2"), configMap("b", "k4", "1")} {
			if err := c.Create(t.Context(), m); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
		must(t, c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("a"), client.MatchingLabels{"l": "1"}))
		for range 20 {
			if got := shown(t, c); got != "[a/k2! a/k3 b/k4]" {
				t.Fatalf("the list shows %s", got)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// CA-2: a namespace given for a kind without namespaces is ignored, cached and live alike.
func TestClusterScopedKindsInNamespacedCaches(t *testing.T) {
	cfg := serve(t)
	for _, namespaces := range []map[string]cache.Config{nil, {"a": {}, "b": {}}} {
		cl := start(t, cfg, func(o *cluster.Options) { o.Cache.DefaultNamespaces = namespaces })
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cr1", Labels: map[string]string{"t": "x"}}}
		if err := cl.GetClient().Create(t.Context(), role); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		for name, r := range map[string]client.Reader{"cached": cl.GetClient(), "live": cl.GetAPIReader(), "namespaced": client.NewNamespacedClient(cl.GetClient(), "a")} {
			must(t, r.Get(t.Context(), types.NamespacedName{Namespace: "a", Name: "cr1"}, &rbacv1.ClusterRole{}))
			var list rbacv1.ClusterRoleList
			must(t, r.List(t.Context(), &list, client.InNamespace("a"), client.MatchingLabels{"t": "x"}))
			if len(list.Items) != 1 {
				t.Errorf("%s: %d roles, want 1", name, len(list.Items))
			}
		}
	}
}

// ST-4, the cluster's half: a refused create leaves nothing, reads follow the namespace to its end, events about it
// are dropped, and its namesake is empty.
func TestTerminatingNamespace(t *testing.T) {
	cl := start(t, serve(t))
	c := cl.GetClient()
	must(t, c.Create(t.Context(), namespace("bye")), c.Create(t.Context(), configMap("bye", "f", "1", finalizer)))
	if got := shown(t, c); got != "[bye/f]" {
		t.Fatal(got)
	}
	first := &corev1.Namespace{}
	must(t, c.Get(t.Context(), types.NamespacedName{Name: "bye"}, first))
	must(t, c.Delete(t.Context(), namespace("bye")))
	now := &corev1.Namespace{}
	must(t, c.Get(t.Context(), types.NamespacedName{Name: "bye"}, now)) // still there, and known to go
	if now.DeletionTimestamp == nil {
		t.Error("the namespace is not shown as terminating right after its deletion")
	}
	err := c.Create(t.Context(), configMap("bye", "n", "1"))
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Fatalf("a create was answered with %v", err)
	}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "bye", Name: "n"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Fatalf("a refused create is shown: %v", err)
	}
	cl.GetEventRecorder("test").Eventf(configMap("bye", "f", "1"), nil, corev1.EventTypeNormal, "Going", "Wait", "it is going")

	f := &corev1.ConfigMap{}
	must(t, c.Get(t.Context(), types.NamespacedName{Namespace: "bye", Name: "f"}, f))
	f.Data = map[string]string{"still": "writable"}
	must(t, c.Update(t.Context(), f))
	must(t, c.Get(t.Context(), types.NamespacedName{Namespace: "bye", Name: "f"}, f))
	if f.Data["still"] != "writable" {
		t.Error("a write into a terminating namespace is not read back")
	}
	must(t, c.Patch(t.Context(), f, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	eventually(t, "the namespace is still there", 30*time.Second, func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), types.NamespacedName{Name: "bye"}, &corev1.Namespace{}))
	})
	if got := shown(t, c); got != "[]" {
		t.Errorf("the namespace is gone, its objects are not: %s", got)
	}
	again := namespace("bye")
	must(t, c.Create(t.Context(), again))
	if again.UID == first.UID {
		t.Error("the namesake has the old UID")
	}
	must(t, c.Get(t.Context(), types.NamespacedName{Name: "bye"}, now))
	if now.UID != again.UID || now.DeletionTimestamp != nil {
		t.Errorf("the namesake is shown as %s, deleted %v", now.UID, now.DeletionTimestamp)
	}
}
