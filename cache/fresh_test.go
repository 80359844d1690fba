// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

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

func TestDeletedObjectsStayAway(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", nil), object("configmaps", "a", "n", nil))
		if err := r.client.Delete(t.Context(), configMap("a", "m")); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", "m") == nil, true)
		want(t, mustList(t, r.client), "[a/n]")
		// Its namesake is another object.
		again := configMap("a", "m")
		if err := r.client.Create(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", "m").UID, again.UID)
		if err := r.client.Delete(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", "m") == nil, true)
		want(t, mustList(t, r.client), "[a/n]")
		r.caughtUp(t)
		want(t, mustList(t, r.client), "[a/n]")
	})
}

// The server answers the removal of the last finalizer with the old object at its old version; the object is
// gone all the same, and none of its last events brings it back.
func TestLastFinalizerRemoved(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", map[string]any{"finalizers": []any{"example.com/f"}}))
		if err := r.client.Delete(t.Context(), configMap("a", "m")); err != nil {
			t.Fatal(err)
		}
		m := r.get(t, "a", "m")
		want(t, m.DeletionTimestamp != nil, true)
		m.Finalizers = nil
		if err := r.client.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", "m") == nil, true)
		want(t, mustList(t, r.client), "[]")

		// Events one by one: after each, the object stays away.
		p := onlyPart(t, r, "ConfigMap")
		s := r.server
		s.mu.Lock()
		history := s.history
		s.mu.Unlock()
		terminating := &corev1.ConfigMap{}
		for _, e := range history {
			if e.after != nil && e.before != nil {
				u := unstructured.Unstructured{Object: e.after}
				*terminating = *configMap("a", "m")
				terminating.UID, terminating.ResourceVersion = u.GetUID(), u.GetResourceVersion()
				terminating.DeletionTimestamp = u.GetDeletionTimestamp()
			}
		}
		if err := p.Update(terminating); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", "m") == nil, true)
		want(t, mustList(t, r.client), "[]")
		r.caughtUp(t)
		want(t, r.get(t, "a", "m") == nil, true)
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

// unknown makes the next write of ConfigMaps reach the server and its answer get lost.
func (r *rig) unknown(stored bool) {
	r.server.answers = func(req *http.Request) *http.Response {
		if req.Method == http.MethodGet {
			return nil
		}
		r.server.answers = nil
		if stored {
			if _, err := r.server.RoundTrip(req); err != nil {
				r.t.Error(err)
			}
		}
		return reply(504, failure(504, metav1.StatusReasonTimeout, "lost"))
	}
}

func TestUnknownOutcomeAsksTheServer(t *testing.T) {
	for _, stored := range []bool{true, false} {
		within(t, func(t *testing.T) {
			r := held(t, Options{}, object("configmaps", "a", "m", map[string]any{"data": map[string]any{"n": "1"}}))
			r.unknown(stored)
			m := r.get(t, "a", "m")
			m.Data["n"] = "2"
			if err := r.client.Update(t.Context(), m); err == nil {
				t.Fatal("the answer should be lost")
			}
			lists := r.server.count("LIST configmaps")
			want(t, r.get(t, "a", "m").Data["n"], map[bool]string{true: "2", false: "1"}[stored])
			want(t, r.server.count("LIST configmaps"), lists+1)
			want(t, mustList(t, r.client), "[a/m]")
			want(t, r.server.count("LIST configmaps"), lists+1) // asked once

			r.unknown(stored)
			if err := r.client.Create(t.Context(), configMap("a", "c")); err == nil {
				t.Fatal("the answer should be lost")
			}
			want(t, r.get(t, "a", "c") != nil, stored)
			r.unknown(stored)
			if err := r.client.Delete(t.Context(), configMap("a", "m")); err == nil {
				t.Fatal("the answer should be lost")
			}
			want(t, r.get(t, "a", "m") == nil, stored)
			r.server.bookmark("configmaps")
			r.caughtUp(t)
			want(t, r.get(t, "a", "m") == nil, stored)
		})
	}
}

func TestManyHolesMakeAListGoLive(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{})
		p := onlyPart(t, r, "ConfigMap")
		for i := range maxFetchedHoles + 1 {
			m := configMap("a", fmt.Sprintf("m%02d", i))
			r.unknown(true)
			if err := r.client.Create(t.Context(), m); err == nil {
				t.Fatal("the answer should be lost")
			}
		}
		lists := r.server.count("LIST configmaps")
		want(t, len(mustList(t, r.client, client.InNamespace("a"))), maxFetchedHoles+1)
		want(t, r.server.count("LIST configmaps"), lists+1)
		want(t, p.overlay.holes(), 0)
		want(t, len(mustList(t, r.client, client.InNamespace("a"))), maxFetchedHoles+1)
		want(t, r.server.count("LIST configmaps"), lists+1)
		r.caughtUp(t)
	})
}

func TestOverlayIsBounded(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", nil))
		p := onlyPart(t, r, "ConfigMap")
		for i := range maxOverlay + 1 {
			p.overlay.putHole(fmt.Sprintf("a/h%d", i))
		}
		lists := r.server.count("LIST configmaps")
		want(t, r.get(t, "a", "h7") == nil, true)
		want(t, r.server.count("LIST configmaps"), lists+1)
		want(t, p.overlay.holes(), 0)
	})
}

func TestFormsThatTellTooLittleLeaveHoles(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", map[string]any{"data": map[string]any{"n": "1"}}))
		// A patch of the metadata, beside a store of whole objects.
		m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "m"}}
		if err := r.client.Patch(t.Context(), m, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"l":"1"}}}`))); err != nil {
			t.Fatal(err)
		}
		want(t, onlyPart(t, r, "ConfigMap").overlay.holes(), 1)
		got := r.get(t, "a", "m")
		want(t, got.Labels["l"]+got.Data["n"], "11")
		// A typed write, beside an unstructured store.
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind("ConfigMap")
		r.server.release("configmaps")
		if err := r.client.Get(t.Context(), key("a", "m"), u); err != nil {
			t.Fatal(err)
		}
		r.server.hold("configmaps")
		got.Data["n"] = "2"
		if err := r.client.Update(t.Context(), got); err != nil {
			t.Fatal(err)
		}
		lists := r.server.count("LIST configmaps")
		if err := r.client.Get(t.Context(), key("a", "m"), u); err != nil {
			t.Fatal(err)
		}
		want(t, u.Object["data"], map[string]any{"n": "2"})
		want(t, r.server.count("LIST configmaps"), lists+1)
		// An unstructured write tells everything.
		u.Object["data"] = map[string]any{"n": "3"}
		if err := r.client.Update(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", "m").Data["n"], "3")
		want(t, r.server.count("LIST configmaps"), lists+1)
	})
}

func TestOtherVersionsAndSubresourcesLeaveHoles(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", nil))
		p := onlyPart(t, r, "ConfigMap")
		body := []byte(`{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"m","namespace":"a","uid":"uid-1","resourceVersion":"99"}}`)
		_, settle, err := r.cache.Begin(t.Context(), client.Write{Verb: client.VerbUpdate, GroupVersionKind: p.set.entry.gvk,
			SubResource: "scale", Namespace: "a", Name: "m"})
		if err != nil {
			t.Fatal(err)
		}
		settle(client.Outcome{Sent: true, StatusCode: 200, ContentType: "application/json", Body: body})
		want(t, p.overlay.holes(), 1)
		want(t, r.get(t, "a", "m") != nil, true)
		want(t, p.overlay.holes(), 0)

		other := p.set.entry.gvk
		other.Version = "v2"
		_, settle, _ = r.cache.Begin(t.Context(), client.Write{Verb: client.VerbUpdate, GroupVersionKind: other, Namespace: "a", Name: "m"})
		settle(client.Outcome{Sent: true, StatusCode: 200, ContentType: "application/json",
			Body: []byte(`{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"m","namespace":"a","uid":"uid-1","resourceVersion":"99"}}`)})
		want(t, p.overlay.holes(), 1)

		_, settle, _ = r.cache.Begin(t.Context(), client.Write{Verb: client.VerbUpdate, GroupVersionKind: p.set.entry.gvk, Namespace: "a", Name: "odd"})
		settle(client.Outcome{Sent: true, StatusCode: 200, ContentType: "application/json",
			Body: []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"odd","namespace":"a","uid":"u","resourceVersion":"v7-beta"}}`)})
		want(t, p.overlay.holes(), 2)

		_, settle, _ = r.cache.Begin(t.Context(), client.Write{Verb: client.VerbDelete, GroupVersionKind: p.set.entry.gvk, Namespace: "a", Name: "nouid"})
		settle(client.Outcome{Sent: true, StatusCode: 200, ContentType: "application/json",
			Body: []byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`)})
		want(t, p.overlay.holes(), 3)
	})
}

// An answer that was sent before a hole appeared does not fill it: which came first at the server is unknown.
func TestHolesAreFilledByLaterAnswersOnly(t *testing.T) {
	var now uint64
	o := newOverlay(func() uint64 { now++; return now })
	early := o.clock()
	o.putHole("k")
	o.putAnswer("k", "early", "u", "7", early)
	want(t, o.holes(), 1)
	o.putAnswer("k", "late", "u", "8", o.clock())
	want(t, o.holes(), 0)
	s, _ := o.slotAt("k")
	want(t, s.answer.obj, "late")
	o.putAnswer("k", "older", "u", "6", o.clock())
	s, _ = o.slotAt("k")
	want(t, s.answer.obj, "late")
	o.putTombstone("k", "u", "", "", o.clock())
	s, _ = o.slotAt("k")
	want(t, s.answer.obj, nil)
	want(t, s.answer.version, "8")
	o.putAnswer("k", "overtaken", "u", "9", early)
	s, _ = o.slotAt("k")
	want(t, s.answer.obj, nil)
	o.putAnswer("k", "namesake", "u2", "12", o.clock())
	s, _ = o.slotAt("k")
	want(t, s.resolve(nil, "11"), "namesake")
	want(t, s.resolve(nil, "12"), nil)
	o.unbury("k", "u")
	o.sweep("12")
	want(t, o.size(), 0)
	o.putTombstone("k", "u", "", "", o.clock()) // late: its DELETE event was seen
	want(t, o.size(), 0)
}

func TestDeleteAllOf(t *testing.T) { // CL-1 (4)
	within(t, func(t *testing.T) {
		r := held(t, Options{},
			object("configmaps", "a", "k1", labelled("l", "1")),
			object("configmaps", "a", "k2", with(labelled("l", "1"), map[string]any{"finalizers": []any{"example.com/f"}})),
			object("configmaps", "a", "k3", labelled("l", "2")),
			object("configmaps", "b", "k4", labelled("l", "1")))
		fresh := configMap("a", "k5")
		fresh.Labels = map[string]string{"l": "1"}
		if err := r.client.Create(t.Context(), fresh); err != nil {
			t.Fatal(err)
		}
		r.server.put(t, object("configmaps", "a", "k6", labelled("l", "1"))) // unknown to the cache
		if err := r.client.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("a"), client.MatchingLabels{"l": "1"}); err != nil {
			t.Fatal(err)
		}
		want(t, mustList(t, r.client), "[a/k2 a/k3 b/k4]")
		want(t, r.get(t, "a", "k2").DeletionTimestamp != nil, true)
		want(t, r.get(t, "a", "k6") == nil, true)
		r.server.release("configmaps")
		synctest.Wait()
		r.server.bookmark("configmaps")
		synctest.Wait()
		want(t, mustList(t, r.client), "[a/k2 a/k3 b/k4]")
		r.caughtUp(t)
	})
}

// When the answer is lost, neither labels that are old here nor objects that are unknown hide what was deleted.
func TestDeleteAllOfWithoutAnAnswer(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", labelled("l", "1")), object("configmaps", "a", "n", labelled("l", "1")))
		r.server.put(t, object("configmaps", "a", "m", labelled("l", "2"))) // unseen
		r.server.put(t, object("configmaps", "a", "f", with(labelled("l", "2"), map[string]any{"finalizers": []any{"example.com/f"}})))
		fresh := configMap("a", "z") // known from its answer only
		fresh.Labels = map[string]string{"l": "2"}
		if err := r.client.Create(t.Context(), fresh); err != nil {
			t.Fatal(err)
		}
		r.unknown(true)
		err := r.client.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("a"), client.MatchingLabels{"l": "2"})
		want(t, err != nil, true)
		want(t, mustList(t, r.client), "[a/f a/n]")
		want(t, r.get(t, "a", "m") == nil, true)
		want(t, r.get(t, "a", "f").DeletionTimestamp != nil, true)
		r.server.bookmark("configmaps")
		r.caughtUp(t)
	})
}

func TestNamespaceIsStillThere(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("namespaces", "", "bye", map[string]any{"spec": map[string]any{"finalizers": []any{"kubernetes"}}}))
		r := newRig(t, Options{}, s)
		ns := &corev1.Namespace{}
		if err := r.client.Get(t.Context(), key("", "bye"), ns); err != nil {
			t.Fatal(err)
		}
		s.hold("namespaces")
		p := onlyPart(t, r, "Namespace")
		answered := func(w client.Write, body string) {
			w.GroupVersionKind, w.Name = p.set.entry.gvk, "bye"
			_, settle, _ := r.cache.Begin(t.Context(), w)
			settle(client.Outcome{Sent: true, StatusCode: 200, ContentType: "application/json", Body: []byte(body)})
		}
		stamp := `"deletionTimestamp":"2026-11-30T00:00:00Z"`
		answered(client.Write{Verb: client.VerbDelete}, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"bye","uid":"uid-1","resourceVersion":"90",`+stamp+`},"spec":{"finalizers":["kubernetes"]}}`)
		if err := r.client.Get(t.Context(), key("", "bye"), ns); err != nil || ns.DeletionTimestamp == nil {
			t.Fatal(err, ns.DeletionTimestamp)
		}
		answered(client.Write{Verb: client.VerbUpdate, SubResource: "finalize"}, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"bye","uid":"uid-1","resourceVersion":"91",`+stamp+`},"spec":{}}`)
		want(t, apierrors.IsNotFound(r.client.Get(t.Context(), key("", "bye"), ns)), true)
	})
}

// What is written while the first list is under way is not lost, whatever that list shows.
func TestWriteDuringTheFirstList(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.noStream = true
		stale := make(chan struct{})
		s.answers = func(req *http.Request) *http.Response {
			if strings.Contains(req.URL.RawQuery, "watch") || req.Method != http.MethodGet {
				return nil
			}
			r, _ := s.parse(req)
			res := s.list(req, r) // taken now, delivered later
			<-stale
			return res
		}
		r := newRig(t, Options{}, s)
		if _, err := r.cache.GetInformer(t.Context(), &corev1.ConfigMap{}, BlockUntilSynced(false)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := r.client.Create(t.Context(), configMap("a", "m")); err != nil {
			t.Fatal(err)
		}
		s.hold("configmaps")
		close(stale)
		synctest.Wait()
		s.answers = nil
		want(t, mustList(t, r.client), "[a/m]")
		r.caughtUp(t)
	})
}

// A server that was restored to an older state: what was known of newer ones is void.
func TestRelistBelowTheStoreDropsTheOverlay(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", map[string]any{"data": map[string]any{"n": "1"}}))
		p := onlyPart(t, r, "ConfigMap")
		m := r.get(t, "a", "m")
		m.Data["n"] = "2"
		if err := r.client.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		old := configMap("a", "m")
		old.UID, old.ResourceVersion, old.Data = m.UID, "3", map[string]string{"n": "0"}
		if err := p.Replace([]any{old}, "3"); err != nil {
			t.Fatal(err)
		}
		want(t, p.overlay.size(), 0)
		want(t, r.get(t, "a", "m").Data["n"], "0")
	})
}

func TestStuckWatchMakesReadsGoLive(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", map[string]any{"data": map[string]any{"n": "1"}}))
		m := r.get(t, "a", "m")
		m.Data["n"] = "2"
		if err := r.client.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		r.server.put(t, object("configmaps", "a", "foreign", nil))
		want(t, mustList(t, r.client), "[a/m]")
		time.Sleep(overlayAge + time.Second)
		p := onlyPart(t, r, "ConfigMap")
		want(t, p.overlay.stuck.Load(), true)
		want(t, mustList(t, r.client), "[a/foreign a/m]") // the server's word
		want(t, r.get(t, "a", "foreign") != nil, true)
		r.server.release("configmaps")
		time.Sleep(overlayAge + time.Second)
		want(t, p.overlay.stuck.Load(), false)
		lists := r.server.count("LIST configmaps")
		want(t, mustList(t, r.client), "[a/foreign a/m]")
		want(t, r.server.count("LIST configmaps"), lists)
		r.caughtUp(t)
	})
}

// A hidden object gets no event: its answer leaves by age, and that is no sign of a stuck watch.
func TestHiddenAnswerLeavesQuietly(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"x": "1"})})
		if err := r.client.Create(t.Context(), configMap("a", "out")); err != nil {
			t.Fatal(err)
		}
		p := onlyPart(t, r, "ConfigMap")
		want(t, p.overlay.size(), 1)
		time.Sleep(overlayAge + time.Second)
		want(t, p.overlay.size(), 0)
		want(t, p.overlay.stuck.Load(), false)
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

// A failing fetch of a hole fails the read: the cache does not know better.
func TestHoleThatCannotBeFetchedFailsTheRead(t *testing.T) {
	within(t, func(t *testing.T) {
		r := held(t, Options{}, object("configmaps", "a", "m", nil))
		onlyPart(t, r, "ConfigMap").overlay.putHole("a/m")
		r.server.forbid("configmaps", failure(403, metav1.StatusReasonForbidden, "no longer"))
		err := r.client.Get(t.Context(), key("a", "m"), configMap("", ""))
		want(t, apierrors.IsForbidden(err), true)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err = r.client.List(ctx, &corev1.ConfigMapList{})
		want(t, err != nil && !errors.Is(err, errStopped), true)
		r.server.forbid("configmaps", nil)
	})
}

// A list may be older than what it is compared with: a tombstone stays while the object it masks may still come.
func TestTombstonesOfObjectsTheStoreIsYetToSee(t *testing.T) {
	var now uint64
	o := newOverlay(func() uint64 { now++; return now })
	uids := func(u types.UID) func(string) types.UID { return func(string) types.UID { return u } }
	asked := o.clock()
	o.putTombstone("k", "u2", "", "u2", o.clock())
	o.relisted("10", "5", asked, uids(""), uids(""))
	want(t, o.size(), 1) // the list was sent before u2 was deleted, perhaps before it was made
	o.relisted("11", "10", asked, uids("u1"), uids("u1"))
	want(t, o.size(), 1)
	o.unbury("k", "u1")
	want(t, o.size(), 1) // an older object's end says nothing
	o.relisted("12", "11", asked, uids(""), uids("u2"))
	want(t, o.size(), 0) // the store had it, the list does not
	o.putTombstone("k", "u3", "", "u3", o.clock())
	o.relisted("13", "12", o.clock(), uids("u3"), uids(""))
	want(t, o.size(), 1)
	o.relisted("14", "13", o.clock(), uids(""), uids(""))
	want(t, o.size(), 0)
}

// The store shows a former object of the key: the end of a later one must not bring that back.
func TestFormerObjectStaysAwayToo(t *testing.T) {
	for _, touched := range []bool{true, false} {
		within(t, func(t *testing.T) {
			r := held(t, Options{}, object("configmaps", "a", "m", map[string]any{"data": map[string]any{"n": "former"}}))
			r.server.remove("configmaps", "a", "m")
			r.server.put(t, object("configmaps", "a", "m", nil)) // both unseen
			m := configMap("a", "m")
			if touched {
				if err := r.client.Patch(t.Context(), m, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"n":"1"}}`))); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.client.Delete(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			lists := r.server.count("LIST configmaps")
			want(t, r.get(t, "a", "m") == nil, true)
			want(t, mustList(t, r.client), "[]")
			want(t, r.server.count("LIST configmaps") > lists, !touched) // only then is the server asked
			r.server.bookmark("configmaps")
			r.caughtUp(t)
			want(t, r.get(t, "a", "m") == nil, true)
		})
	}
}
