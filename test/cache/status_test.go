// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// phaseOf and setPhase are the status of a Widget, typed or not.
func phaseOf(t *testing.T, w client.Object) string {
	t.Helper()
	if typed, ok := w.(*Widget); ok {
		return typed.Status.Phase
	}
	phase, _, err := unstructured.NestedString(w.(*unstructured.Unstructured).Object, "status", "phase")
	must(t, err)
	return phase
}

func setPhase(t *testing.T, w client.Object, phase string) {
	t.Helper()
	if typed, ok := w.(*Widget); ok {
		typed.Status.Phase = phase
		return
	}
	must(t, unstructured.SetNestedField(w.(*unstructured.Unstructured).Object, phase, "status", "phase"))
}

// CL-2 (A) to (D) through a client that reads its own writes: a status changed in memory only is overwritten by the
// server's answer, and after each step the cache shows what the server has, although no event comes.
func TestCachedReadAfterStatusInMemory(t *testing.T) {
	copied := func(w client.Object) client.Object { return w.DeepCopyObject().(client.Object) }
	for name, write := range map[string]func(c client.Client, w, before client.Object) error{
		"A": func(c client.Client, w, _ client.Object) error {
			w.SetFinalizers([]string{finalizer})
			return c.Update(t.Context(), w)
		},
		"B": func(c client.Client, w, before client.Object) error {
			w.SetFinalizers([]string{finalizer})
			return c.Patch(t.Context(), w, client.MergeFrom(before))
		},
		"C": func(c client.Client, w, before client.Object) error {
			return c.Patch(t.Context(), w, client.MergeFrom(before))
		},
	} {
		for _, s := range []shape{{widgetKind, apiutil.Typed}, {widgetKind, apiutil.Unstructured}} {
			t.Run(name+" "+s.String(), func(t *testing.T) {
				c, w := heldWidget(t, s)
				before := copied(w)
				setPhase(t, w, "Ready")
				must(t, write(c, w, before))
				sameAsLive(t, "after the write", c, w)
				if phaseOf(t, w) != "" {
					t.Errorf("the phase in memory is %q; the server's answer has none", phaseOf(t, w))
				}
				if same := w.GetResourceVersion() == before.GetResourceVersion(); same != (name == "C") {
					t.Errorf("the version is %s after %s", w.GetResourceVersion(), before.GetResourceVersion())
				}
				must(t, c.Status().Update(t.Context(), w))
				sameAsLive(t, "after the status", c, w)
				if phaseOf(t, w) != "" {
					t.Errorf("the phase stored is %q", phaseOf(t, w))
				}
				// (D): what is saved before and put back after is stored, without a conflict.
				before = copied(w)
				setPhase(t, w, "Ready")
				saved := phaseOf(t, w)
				must(t, write(c, w, before))
				sameAsLive(t, "after the second write", c, w)
				setPhase(t, w, saved)
				must(t, c.Status().Update(t.Context(), w))
				sameAsLive(t, "after the saved status", c, w)
				if phaseOf(t, w) != "Ready" {
					t.Errorf("the phase stored is %q, not the one that was put back", phaseOf(t, w))
				}
				must(t, c.Status().Patch(t.Context(), w, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Done"}}`))))
				sameAsLive(t, "after a patch of the status", c, w)
			})
		}
	}
}

// heldWidget creates a Widget through a client whose cache is filled and then hears of nothing.
func heldWidget(t *testing.T, s shape) (client.Client, client.Object) {
	t.Helper()
	held, watches := heldWatches(config)
	c, ns := start(t, held).GetClient(), namespace(t)
	want(t, "at the beginning", s.listed(t, c, client.InNamespace(ns)))
	watches.hold()
	t.Cleanup(watches.release)
	w := s.object(ns, "w")
	must(t, c.Create(t.Context(), w))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(w), w))
	return c, w
}

// sameAsLive checks that a cached read, a live read and the object in memory say the same.
func sameAsLive(t *testing.T, when string, c client.Client, w client.Object) {
	t.Helper()
	cached, now := w.DeepCopyObject().(client.Object), w.DeepCopyObject().(client.Object)
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(w), cached), live.Get(t.Context(), client.ObjectKeyFromObject(w), now))
	for _, obj := range []runtime.Object{cached, now} { // a typed object need not say its kind
		obj.GetObjectKind().SetGroupVersionKind(w.GetObjectKind().GroupVersionKind())
	}
	if !equality.Semantic.DeepEqual(cached, now) {
		t.Errorf("%s the cache shows\n%+v\nthe server\n%+v", when, cached, now)
	}
	if !equality.Semantic.DeepEqual(w, now) {
		t.Errorf("%s the object in memory is\n%+v\nthe server's\n%+v", when, w, now)
	}
}
