// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
)

func TestMain(m *testing.M) {
	checking = true
	goleak.VerifyTestMain(m)
}

func typesUID(s string) types.UID { return types.UID(s) }

// rig is a server, a started cache of it and a client that reads from the cache.
type rig struct {
	t      testing.TB
	server *server
	cache  *informerCache
	client client.Client
	live   client.Client
}

// newRig makes a rig whose client reads its own writes. The cache ends with the test.
func newRig(t testing.TB, opts Options, s *server) *rig {
	t.Helper()
	if s == nil {
		s = newServer()
	}
	r := newStoppedRig(t, opts, s)
	r.start()
	return r
}

// newStoppedRig is newRig without the start.
func newStoppedRig(t testing.TB, opts Options, s *server) *rig {
	t.Helper()
	config := s.config()
	config.ContentType = "application/json"
	opts.HTTPClient, opts.Mapper = s.httpClient(), s.mapper()
	c, err := newCache(config, opts)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, server: s, cache: c}
	on := true
	r.client = r.newClient(config, &client.CacheOptions{Reader: c, Unstructured: true, EnableReadYourWritesConsistency: &on})
	r.live = r.newClient(config, nil)
	return r
}

func (r *rig) newClient(config *rest.Config, co *client.CacheOptions) client.Client {
	r.t.Helper()
	c, err := client.New(config, client.Options{HTTPClient: r.server.httpClient(), Mapper: r.server.mapper(), Cache: co})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *rig) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.cache.Start(ctx) }()
	<-r.cache.started
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Start: %v", err)
		}
	})
}

// within runs a test in a bubble with its own time.
func within(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func ctx10(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// object makes an object of a kind of the server.
func object(resource, ns, name string, more map[string]any) map[string]any {
	k := serverKinds[resource].gvk
	m := map[string]any{"name": name}
	if ns != "" {
		m["namespace"] = ns
	}
	out := map[string]any{"apiVersion": k.GroupVersion().String(), "kind": k.Kind, "metadata": m}
	for key, v := range more {
		if key == "labels" || key == "finalizers" || key == "annotations" {
			m[key] = v
			continue
		}
		out[key] = v
	}
	return out
}

func labelled(kv ...string) map[string]any {
	l := map[string]any{}
	for i := 0; i+1 < len(kv); i += 2 {
		l[kv[i]] = kv[i+1]
	}
	return map[string]any{"labels": l}
}

func with(parts ...map[string]any) map[string]any {
	out := map[string]any{}
	for _, p := range parts {
		maps.Copy(out, p)
	}
	return out
}

func configMap(ns, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
}

func key(ns, name string) client.ObjectKey { return client.ObjectKey{Namespace: ns, Name: name} }

// names returns the keys of a list's items, in order.
func names(list *corev1.ConfigMapList) (out []string) {
	for _, m := range list.Items {
		out = append(out, keyIn(m.Namespace, m.Name))
	}
	return out
}

func mustList(t testing.TB, r client.Reader, opts ...client.ListOption) []string {
	t.Helper()
	var list corev1.ConfigMapList
	if err := r.List(ctx10(t), &list, opts...); err != nil {
		t.Fatalf("list: %v", err)
	}
	return names(&list)
}

func want(t testing.TB, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// extract returns the items of a list.
func extract(list client.ObjectList) ([]runtime.Object, error) { return meta.ExtractList(list) }
