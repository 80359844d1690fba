// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

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

// TestDeletesAnsweredInProtobuf wants the metadata of the answer to do where it tells that the object is gone, and the whole
// object to count where it does not.
func TestDeletesAnsweredInProtobuf(t *testing.T) {
	leaving := &metav1.Time{Time: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)}
	for name, c := range map[string]struct {
		change func(*metav1.ObjectMeta)
		there  bool
		holes  int
	}{
		"gone": {func(*metav1.ObjectMeta) {}, false, 0},
		"gone, no grace": {func(m *metav1.ObjectMeta) {
			m.DeletionTimestamp, m.DeletionGracePeriodSeconds = leaving, ptr.To[int64](0)
		}, false, 0},
		"in its grace": {func(m *metav1.ObjectMeta) {
			m.DeletionTimestamp, m.DeletionGracePeriodSeconds = leaving, ptr.To[int64](30)
		}, true, 0},
		"held":           {func(m *metav1.ObjectMeta) { m.DeletionTimestamp, m.Finalizers = leaving, []string{"example.com/f"} }, true, 0},
		"an odd version": {func(m *metav1.ObjectMeta) { m.ResourceVersion = "v7" }, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T) {
				r := held(t, Options{}, object("configmaps", "a", "m", nil))
				before := r.get(t, "a", "m")
				p := onlyPart(t, r, "ConfigMap")
				m := before.DeepCopy()
				m.ResourceVersion = "90"
				c.change(&m.ObjectMeta)
				_, settle, err := r.cache.Begin(t.Context(), client.Write{Verb: client.VerbDelete, GroupVersionKind: p.set.entry.gvk, Namespace: "a", Name: "m"})
				if err != nil {
					t.Fatal(err)
				}
				settle(client.Outcome{Sent: true, StatusCode: 200, ContentType: "application/vnd.kubernetes.protobuf", Body: protobufOf(t, m)})
				want(t, p.overlay.holes(), c.holes)
				now := r.get(t, "a", "m")
				want(t, now != nil, c.there)
				if now != nil && m.DeletionTimestamp != nil {
					want(t, now.DeletionTimestamp != nil, true)
				}
			})
		})
	}
}

// protobufOf is a ConfigMap as a server sends it.
func protobufOf(t *testing.T, m *corev1.ConfigMap) []byte {
	t.Helper()
	return sealed(t, "v1", "ConfigMap", m)
}
