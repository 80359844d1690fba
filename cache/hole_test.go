// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wherry-dev/wherry/client"
)

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
