// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// seed creates an object with the given labels; the metadata form cannot, so the unstructured one does.
func seed(t *testing.T, c client.Client, m maker, ns, name string, with map[string]string) client.Object {
	t.Helper()
	creator := m
	if m.form == apiutil.Metadata {
		creator.form = apiutil.Unstructured
	}
	obj := creator.object(ns, name)
	obj.SetLabels(with)
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if obj.GetUID() == "" || obj.GetResourceVersion() == "" || obj.GetCreationTimestamp().Unix() <= 0 {
		t.Fatalf("the answer is not in the object: %v", obj)
	}
	return obj
}

func names(t *testing.T, list client.ObjectList) []string {
	t.Helper()
	got := []string{}
	if err := meta.EachListItem(list, func(item runtime.Object) error {
		got = append(got, item.(client.Object).GetName())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	return got
}

func TestReadsInEveryForm(t *testing.T) {
	c := newClient(t, client.Options{})
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			ns, other := namespace(t, c), namespace(t, c)
			created := seed(t, c, m, ns, "x", map[string]string{"l": "1", "x": ""})
			seed(t, c, m, ns, "y", map[string]string{"l": "1"})
			seed(t, c, m, ns, "z", map[string]string{"l": "2"})
			seed(t, c, m, other, "w", map[string]string{"l": "1"})
			got := m.object("", "")
			got.SetAnnotations(map[string]string{"old": "gone"})
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "x"}, got); err != nil {
				t.Fatal(err)
			}
			if got.GetUID() != created.GetUID() || got.GetLabels()["l"] != "1" || len(got.GetAnnotations()) != 0 {
				t.Errorf("got %v", got)
			}
			if kind := got.GetObjectKind().GroupVersionKind(); m.form != apiutil.Typed && kind != m.kind {
				t.Errorf("kind %v", kind)
			}
			err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "none"}, m.object("", ""))
			if !apierrors.IsNotFound(err) || client.IgnoreNotFound(err) != nil {
				t.Errorf("missing: %v", err)
			}
			in := client.InNamespace(ns)
			for name, test := range map[string]struct {
				opts []client.ListOption
				want []string
			}{
				"labels":            {[]client.ListOption{in, client.MatchingLabels{"l": "1"}}, []string{"x", "y"}},
				"labels twice":      {[]client.ListOption{in, client.MatchingLabels{"l": "1"}, client.HasLabels{"x"}}, []string{"x"}},
				"selector":          {[]client.ListOption{in, client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{"l": "2"})}}, []string{"z"}},
				"field":             {[]client.ListOption{in, client.MatchingFields{"metadata.name": "y"}}, []string{"y"}},
				"field selector":    {[]client.ListOption{client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.namespace", other)}}, []string{"w"}},
				"nothing by label":  {[]client.ListOption{in, client.MatchingLabelsSelector{Selector: labels.Nothing()}}, []string{}},
				"nothing by field":  {[]client.ListOption{in, client.MatchingFieldsSelector{}}, []string{}},
				"no such label":     {[]client.ListOption{in, client.HasLabels{"not a label"}}, []string{}},
				"all of them":       {[]client.ListOption{in}, []string{"x", "y", "z"}},
				"struct of options": {[]client.ListOption{&client.ListOptions{Namespace: ns, LabelSelector: labels.SelectorFromSet(labels.Set{"l": "2"})}}, []string{"z"}},
				"raw":               {[]client.ListOption{in, &client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: "l=2"}}}, []string{"z"}},
			} {
				list := m.list()
				if err := c.List(t.Context(), list, test.opts...); err != nil {
					t.Errorf("%s: %v", name, err)
				} else if got := names(t, list); !slices.Equal(got, test.want) {
					t.Errorf("%s: %v, want %v", name, got, test.want)
				}
			}
			list, pages, all := m.list(), 0, []string{}
			for next := client.Continue(""); pages == 0 || next != ""; pages++ {
				if err := c.List(t.Context(), list, in, client.Limit(2), next); err != nil {
					t.Fatal(err)
				}
				all, next = append(all, names(t, list)...), client.Continue(list.GetContinue())
			}
			if pages != 2 || !slices.Equal(all, []string{"x", "y", "z"}) {
				t.Errorf("%d pages with %v", pages, all)
			}
		})
	}
}

func TestWritesInEveryForm(t *testing.T) {
	c := newClient(t, client.Options{})
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			ns := namespace(t, c)
			ctx, obj := t.Context(), m.object(ns, "x")
			if m.form == apiutil.Metadata {
				if err := c.Create(ctx, obj); err == nil {
					t.Error("created from metadata alone")
				}
				seed(t, c, m, ns, "x", nil)
				if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
					t.Fatal(err)
				}
				if err := c.Update(ctx, obj); err == nil {
					t.Error("updated from metadata alone")
				}
			} else {
				dry := m.object(ns, "x")
				if err := c.Create(ctx, dry, client.DryRunAll); err != nil {
					t.Fatal(err)
				}
				if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
					t.Errorf("a dry run stored: %v", err)
				}
				obj = m.object(ns, "x")
				if err := c.Create(ctx, obj, client.FieldOwner("owner-1")); err != nil {
					t.Fatal(err)
				}
				if err := c.Create(ctx, m.object(ns, "x")); !apierrors.IsAlreadyExists(err) || client.IgnoreAlreadyExists(err) != nil {
					t.Errorf("created twice: %v", err)
				}
				obj.SetAnnotations(map[string]string{"updated": "yes"})
				stale := obj.DeepCopyObject().(client.Object)
				if err := c.Update(ctx, obj, client.FieldOwner("owner-2")); err != nil {
					t.Fatal(err)
				}
				if err := c.Update(ctx, stale); !apierrors.IsConflict(err) {
					t.Errorf("updated from an old version: %v", err)
				}
			}
			before := obj.DeepCopyObject().(client.Object)
			obj.SetLabels(map[string]string{"patched": "yes"})
			if err := c.Patch(ctx, obj, client.MergeFrom(before), client.FieldOwner("patcher")); err != nil {
				t.Fatal(err)
			}
			if obj.GetResourceVersion() == before.GetResourceVersion() || obj.GetLabels()["patched"] != "yes" {
				t.Errorf("patched %v", obj)
			}
			stale := before.DeepCopyObject().(client.Object)
			stale.SetLabels(map[string]string{"patched": "twice"})
			if err := c.Patch(ctx, stale, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
				t.Errorf("patched from an old version: %v", err)
			}
			if err := c.Patch(ctx, obj, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/labels/patched"}]`))); err != nil || len(obj.GetLabels()) != 0 {
				t.Errorf("JSON patch: %v, %v", obj, err)
			}
			wrong := types.UID("another")
			if err := c.Delete(ctx, obj, client.Preconditions{UID: &wrong}); !apierrors.IsConflict(err) {
				t.Errorf("deleted another: %v", err)
			}
			if err := c.Delete(ctx, obj, client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationBackground), client.GracePeriodSeconds(0)); err != nil {
				t.Errorf("dry delete: %v", err)
			}
			uid := obj.GetUID()
			if err := c.Delete(ctx, obj, client.Preconditions{UID: &uid}); err != nil {
				t.Errorf("delete: %v", err)
			}
			if err := c.Delete(ctx, obj); !apierrors.IsNotFound(err) {
				t.Errorf("deleted twice: %v", err)
			}
		})
	}
}

// Case CL-1 of the cases that people hit, the live part.
func TestDeleteAllOfAtItsEdges(t *testing.T) {
	c := newClient(t, client.Options{})
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			a, b, ctx := namespace(t, c), namespace(t, c), t.Context()
			seed(t, c, m, a, "k1", map[string]string{"l": "1"})
			k2 := seed(t, c, m, a, "k2", map[string]string{"l": "1"})
			seed(t, c, m, a, "k3", map[string]string{"l": "2"})
			seed(t, c, m, b, "k4", map[string]string{"l": "1"})
			if err := client.AddFinalizer(ctx, c, c, k2, "example.com/f"); err != nil {
				t.Fatal(err)
			}
			err := c.DeleteAllOf(ctx, m.object("", ""), client.MatchingLabels{"l": "1"})
			if !apierrors.IsMethodNotSupported(err) && !apierrors.IsNotFound(err) {
				t.Errorf("without a namespace: %v", err)
			}
			if err := c.DeleteAllOf(ctx, m.object("", ""), client.InNamespace(a), client.MatchingLabelsSelector{}); err != nil {
				t.Errorf("nothing selected: %v", err)
			}
			list := m.list()
			if err := c.List(ctx, list, client.InNamespace(a)); err != nil || len(names(t, list)) != 3 {
				t.Errorf("something was deleted: %v, %v", names(t, list), err)
			}
			if err := c.DeleteAllOf(ctx, m.object("", ""), client.InNamespace(a), client.MatchingLabels{"l": "1"}); err != nil {
				t.Fatal(err)
			}
			if err := c.List(ctx, list, client.InNamespace(a)); err != nil || !slices.Equal(names(t, list), []string{"k2", "k3"}) {
				t.Errorf("left %v, %v", names(t, list), err)
			}
			if err := c.Get(ctx, client.ObjectKey{Namespace: a, Name: "k2"}, k2); err != nil || k2.GetDeletionTimestamp() == nil {
				t.Errorf("k2: %v, %v", k2, err)
			}
			if err := client.RemoveFinalizer(ctx, c, c, k2, "example.com/f"); err != nil {
				t.Error(err)
			}
			if err := client.RemoveFinalizer(ctx, c, c, k2, "example.com/f"); err != nil {
				t.Errorf("an object that is gone is done: %v", err)
			}
			if err := c.Get(ctx, client.ObjectKey{Namespace: b, Name: "k4"}, m.object("", "")); err != nil {
				t.Errorf("k4: %v", err)
			}
		})
	}
	if err := c.DeleteAllOf(t.Context(), &corev1.Namespace{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("namespaces: %v", err)
	}
}

func TestWatchInEveryForm(t *testing.T) {
	c := newClient(t, client.Options{})
	for _, m := range makers {
		t.Run(m.name, func(t *testing.T) {
			ns := namespace(t, c)
			events, err := c.Watch(t.Context(), m.list(), client.InNamespace(ns), client.MatchingLabels{"l": "1"})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Stop()
			seed(t, c, m, ns, "other", nil)
			obj := seed(t, c, m, ns, "x", map[string]string{"l": "1"})
			before := obj.DeepCopyObject().(client.Object)
			obj.SetAnnotations(map[string]string{"a": "b"})
			if err := c.Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			if err := c.Delete(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
				select {
				case event := <-events.ResultChan():
					got, ok := event.Object.(client.Object)
					if !ok || event.Type != want || got.GetName() != "x" || apiutil.FormOf(got) != m.form {
						t.Fatalf("got %s of %T %v, want %s", event.Type, event.Object, event.Object, want)
					}
					if kind := got.GetObjectKind().GroupVersionKind(); m.form != apiutil.Typed && kind != m.kind {
						t.Errorf("kind %v", kind)
					}
				case <-time.After(patience):
					t.Fatalf("no %s within %s", want, patience)
				}
			}
		})
	}
	if _, err := c.Watch(t.Context(), makers[0].list(), client.MatchingFields{"no.such.field": "x"}); err == nil {
		t.Error("a field that the server does not know")
	}
	wrong := metav1.PartialObjectMetadataList{}
	if _, err := c.Watch(t.Context(), &wrong); !runtime.IsMissingKind(err) {
		t.Errorf("got %v", err)
	}
}

// A finalizer is added and removed without harm to those of others, whoever writes in between.
func TestFinalizersOfOthers(t *testing.T) {
	c := newClient(t, client.Options{})
	ns := namespace(t, c)
	mine := seed(t, c, makers[0], ns, "x", nil)
	theirs := mine.DeepCopyObject().(client.Object)
	if err := client.AddFinalizer(t.Context(), c, nil, theirs, "example.com/theirs"); err != nil {
		t.Fatal(err)
	}
	if err := client.AddFinalizer(t.Context(), c, nil, mine, "example.com/mine"); err != nil {
		t.Fatal(err) // mine was old: the lock found out
	}
	if got := mine.GetFinalizers(); !slices.Equal(got, []string{"example.com/theirs", "example.com/mine"}) {
		t.Errorf("finalizers %v", got)
	}
	if err := client.RemoveFinalizer(t.Context(), c, nil, theirs, "example.com/theirs"); err != nil {
		t.Fatal(err)
	}
	if got := theirs.GetFinalizers(); !slices.Equal(got, []string{"example.com/mine"}) {
		t.Errorf("finalizers %v", got)
	}
	if err := c.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if err := client.RemoveFinalizer(t.Context(), c, nil, mine, "example.com/mine"); err != nil {
		t.Fatal(err)
	}
	again := seed(t, c, makers[0], ns, "x", nil)
	if err := client.AddFinalizer(t.Context(), c, nil, again, "example.com/mine"); err != nil {
		t.Fatal(err)
	}
	if err := client.RemoveFinalizer(t.Context(), c, nil, mine, "example.com/mine"); err != nil || errors.Is(err, apiutil.ErrNilObject) {
		t.Errorf("an object that is gone: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(again), again); err != nil || len(again.GetFinalizers()) != 1 {
		t.Errorf("its namesake lost its finalizer: %v, %v", again, err)
	}
}
