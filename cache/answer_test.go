// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wherry-dev/wherry/client"
)

// held makes a rig whose cache of ConfigMaps is filled and then hears of nothing.
func held(t *testing.T, opts Options, objs ...map[string]any) *rig {
	t.Helper()
	s := newServer()
	for _, o := range objs {
		s.put(t, o)
	}
	r := newRig(t, opts, s)
	mustList(t, r.client)
	s.hold("configmaps")
	return r
}

// caughtUp lets the cache hear of everything and checks that nothing is left of the overlay.
func (r *rig) caughtUp(t *testing.T) {
	t.Helper()
	r.server.release("configmaps")
	synctest.Wait()
	p := onlyPart(t, r, "ConfigMap")
	if n := p.overlay.size(); n != 0 {
		t.Fatalf("the overlay still says something about %d keys: %+v", n, p.overlay.snapshot(func(string) bool { return true }))
	}
}

func (r *rig) get(t *testing.T, ns, name string, opts ...client.GetOption) *corev1.ConfigMap {
	t.Helper()
	m := configMap("", "")
	if err := r.client.Get(t.Context(), key(ns, name), m, opts...); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		t.Fatal(err)
	}
	return m
}

func TestOwnWritesAreReadAtOnce(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "old", map[string]any{"data": map[string]any{"n": "1"}}))
		m := configMap("a", "new")
		m.Labels = map[string]string{"x": "1"}
		if err := r.client.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", "new").ResourceVersion, m.ResourceVersion)
		want(t, mustList(t, r.client), "[a/new a/old]")
		want(t, mustList(t, r.client, client.MatchingLabels{"x": "1"}), "[a/new]")
		want(t, mustList(t, r.client, client.InNamespace("b")), "[]")
		want(t, mustList(t, r.client, client.Limit(1)), "[a/new]")

		old := r.get(t, "a", "old")
		old.Data["n"] = "2"
		if err := r.client.Update(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", "old").Data["n"], "2")
		if err := r.client.Patch(t.Context(), old, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"n":"3"}}`))); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", "old", client.UnsafeDisableDeepCopy).Data["n"], "3")
		shared := r.get(t, "a", "old", client.UnsafeDisableDeepCopy)
		want(t, &shared.Data != nil, true)
		want(t, r.get(t, "a", "old", client.DisableReadYourWritesConsistency).Data["n"], "1")
		want(t, mustList(t, r.client, client.DisableReadYourWritesConsistency), "[a/old]")
		r.caughtUp(t)
		want(t, r.get(t, "a", "old").Data["n"], "3")
		want(t, mustList(t, r.client), "[a/new a/old]")
	})
}

// A read never waits for an event and other keys never matter: what another client writes meanwhile stays
// unseen, and unneeded.
func TestUnrelatedKeysDoNotMatter(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "other", nil))
		r.server.put(t, object("configmaps", "a", "foreign", nil))
		if err := r.client.Create(t.Context(), configMap("a", "mine")); err != nil {
			t.Fatal(err)
		}
		before := r.server.count("")
		began := time.Now()
		want(t, mustList(t, r.client), "[a/mine a/other]")
		want(t, time.Since(began), time.Duration(0))
		want(t, r.server.count(""), before)
		r.caughtUp(t)
		want(t, mustList(t, r.client), "[a/foreign a/mine a/other]")
	})
}

func TestSelectorsHideOwnWritesToo(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"x": "1"}),
			DefaultFieldSelector: fields.OneTermNotEqualSelector("metadata.name", "secret")},
			object("configmaps", "a", "in", labelled("x", "1")))
		out := configMap("a", "out")
		hidden := configMap("a", "secret")
		hidden.Labels = map[string]string{"x": "1"}
		for _, m := range []*corev1.ConfigMap{out, hidden} {
			if err := r.client.Create(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			want(t, r.get(t, m.Namespace, m.Name) == nil, true)
		}
		in := r.get(t, "a", "in")
		in.Labels = nil
		if err := r.client.Update(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", "in") == nil, true)
		want(t, mustList(t, r.client), "[]")
		// Objects that were never visible get no event of their own; a bookmark settles them.
		r.server.bookmark("configmaps")
		r.caughtUp(t)
		want(t, mustList(t, r.client), "[]")
	})
}

func TestTransformAndIndexesHoldForOwnWrites(t *testing.T) {
	within(t, func(t *testing.T) {
		strip := func(in any) (any, error) {
			in.(*corev1.ConfigMap).Annotations = nil
			return in, nil
		}
		s := newServer()
		r := newRig(t, Options{DefaultTransform: strip}, s)
		byKind := func(o client.Object) []string { return []string{o.(*corev1.ConfigMap).Data["kind"]} }
		if err := r.cache.IndexField(t.Context(), &corev1.ConfigMap{}, "kind", byKind); err != nil {
			t.Fatal(err)
		}
		mustList(t, r.client)
		s.hold("configmaps")
		m := configMap("a", "m")
		m.Annotations, m.Data = map[string]string{"big": "one"}, map[string]string{"kind": "red"}
		if err := r.client.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		want(t, len(r.get(t, "a", "m").Annotations), 0)
		want(t, mustList(t, r.client, client.MatchingFields{"kind": "red"}), "[a/m]")
		m.Data["kind"] = "blue"
		if err := r.client.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		want(t, mustList(t, r.client, client.MatchingFields{"kind": "red"}), "[]")
		want(t, mustList(t, r.client, client.MatchingFields{"kind": "blue"}), "[a/m]")
		r.caughtUp(t)
	})
}

func TestWhatLeavesNothing(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", nil))
		p := onlyPart(t, r, "ConfigMap")
		if err := r.client.Create(t.Context(), configMap("a", "dry"), client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		err := r.client.Create(t.Context(), configMap("a", "m"))
		want(t, apierrors.IsAlreadyExists(err), true)
		err = r.client.Delete(t.Context(), configMap("a", "none"))
		want(t, apierrors.IsNotFound(err), true)
		if err := r.client.Create(t.Context(), configMap("a", "quiet"), client.DisableReadYourWritesConsistency); err != nil {
			t.Fatal(err)
		}
		want(t, p.overlay.size(), 0)
	})
}

func TestGeneratedNames(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{})
		m := configMap("a", "")
		m.GenerateName = "gen-"
		if err := r.client.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", m.Name).UID, m.UID)
		r.caughtUp(t)
	})
}

// CL-2: after each write that carried a status of its own, a cached Get shows what the server stored.
func TestCachedReadAfterStatusInMemory(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", map[string]any{"data": map[string]any{"phase": ""}}))
		m := r.get(t, "a", "m")
		m.Finalizers = []string{"example.com/f"}
		if err := r.client.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		live := configMap("", "")
		if err := r.live.Get(t.Context(), key("a", "m"), live); err != nil {
			t.Fatal(err)
		}
		cached := r.get(t, "a", "m")
		want(t, cached.ResourceVersion+fmt.Sprint(cached.Finalizers), live.ResourceVersion+fmt.Sprint(live.Finalizers))
	})
}
