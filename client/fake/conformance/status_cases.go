// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wherry-dev/wherry/client"
)

// statusCases are CL-2 and its neighbours: what a write to an object and what a write to its status changes.
var statusCases = []Case{
	{"status/CL-2 A: update, then status", answersCreated, func(r *Run) {
		w := r.begunWidget()
		ready(w)
		w.SetFinalizers([]string{"example.com/f"})
		_ = r.Update(w, owner)
		_ = r.UpdateStatus(w, owner)
		_ = r.Get(r.widget("a", "w"))
	}},
	{"status/CL-2 B: patch, then status", answersCreated, func(r *Run) {
		w := r.begunWidget()
		before := w.DeepCopy()
		ready(w)
		w.SetFinalizers([]string{"example.com/f"})
		_ = r.Patch(w, client.MergeFrom(before), owner)
		_ = r.UpdateStatus(w, owner)
		_ = r.Get(r.widget("a", "w"))
	}},
	{"status/CL-2 C: patch of the status only", answersCreated, func(r *Run) {
		w := r.begunWidget()
		before := w.DeepCopy()
		ready(w)
		_ = r.Patch(w, client.MergeFrom(before), owner)
		_ = r.Get(r.widget("a", "w"))
	}},
	{"status/CL-2 D: status saved and put back", answersCreated, func(r *Run) {
		w := r.begunWidget()
		w.SetFinalizers([]string{"example.com/f"})
		_ = r.Update(w, owner)
		ready(w)
		_ = r.UpdateStatus(w, owner)
		_ = r.Get(r.widget("a", "w"))
	}},
	{"status/update changes nothing else", answersCreated, func(r *Run) {
		w := r.begunWidget()
		ready(w)
		w.SetLabels(map[string]string{"x": "y"})
		w.SetFinalizers([]string{"example.com/f"})
		changeContent(w)
		_ = r.UpdateStatus(w, owner)
	}},
	{"status/update of nothing", answersCreated, func(r *Run) {
		w := r.begunWidget()
		ready(w)
		_ = r.UpdateStatus(w, owner)
		_ = r.UpdateStatus(w, owner)
	}},
	{"status/removed", answersCreated, func(r *Run) {
		w := r.begunWidget()
		ready(w)
		_ = r.UpdateStatus(w, owner)
		delete(w.Object, "status")
		_ = r.UpdateStatus(w, owner)
	}},
	{"status/conflict", answersCreated, func(r *Run) {
		w := r.begunWidget()
		old := w.DeepCopy()
		changeContent(w)
		_ = r.Update(w, owner)
		ready(old)
		_ = r.UpdateStatus(old, owner)
		old.SetResourceVersion("")
		_ = r.UpdateStatus(old, owner)
	}},
	{"status/absent", 0, func(r *Run) {
		w := r.widget("a", "no")
		w.SetResourceVersion("5")
		_ = r.UpdateStatus(w)
		_ = r.PatchStatus(w, merge(`{"status":{"phase":"x"}}`))
	}},
	{"status/patch changes nothing else", answersCreated, func(r *Run) {
		w := r.begunWidget()
		_ = r.PatchStatus(w, merge(`{"status":{"phase":"Ready"},"spec":{"size":9},"metadata":{"labels":{"x":"y"}}}`), owner)
		_ = r.PatchStatus(w, jsonPatch(`[{"op":"replace","path":"/status/phase","value":"Gone"}]`), owner)
	}},
	{"status/patch with lock", answersCreated, func(r *Run) {
		w := r.begunWidget()
		before := w.DeepCopy()
		ready(w)
		_ = r.PatchStatus(w.DeepCopy(), client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), owner)
		_ = r.PatchStatus(w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), owner)
	}},
	{"status/apply", answersCreated, func(r *Run) {
		w := r.begunWidget()
		_ = r.ApplyStatus(config(WidgetKind, w, map[string]any{"status": map[string]any{"phase": "Ready"}}), client.FieldOwner("applier"))
		_ = r.ApplyStatus(config(WidgetKind, w, map[string]any{"status": map[string]any{"phase": "Other"}}), client.FieldOwner("second"))
		_ = r.Get(r.widget("a", "w"))
	}},
	{"status/apply to an absent object", 0, func(r *Run) {
		_ = r.ApplyStatus(config(WidgetKind, r.widget("a", "no"), map[string]any{"status": map[string]any{"phase": "x"}}), client.FieldOwner("applier"))
	}},
	{"status/apply of the object leaves it alone", answersCreated, func(r *Run) {
		w := r.begunWidget()
		_ = r.Apply(config(WidgetKind, w, map[string]any{"spec": map[string]any{"big": int64(1)}, "status": map[string]any{"phase": "x"}}), client.FieldOwner("applier"))
	}},
	{"status/dry run", answersCreated, func(r *Run) {
		w := r.begunWidget()
		ready(w)
		_ = r.UpdateStatus(w, owner, client.DryRunAll)
		_ = r.Get(r.widget("a", "w"))
	}},
	{"status/of a kind without", 0, func(r *Run) {
		c := r.configMap("a", "x")
		r.Made(c)
		_ = r.UpdateStatus(c)
		_ = r.PatchStatus(c, merge(`{}`))
	}},
	{"status/of a built-in kind", answersCreated, func(r *Run) {
		rs := r.replicaSet("x", 1)
		r.Hide("metadata.managedFields")
		_ = r.Create(rs, owner)
		rs.Status.Replicas, rs.Status.ReadyReplicas = 1, 1
		_ = r.UpdateStatus(rs, owner)
		rs.Status.Replicas = 5
		_ = r.Update(rs, owner)
	}},
}

func ready(w *unstructured.Unstructured) { w.Object["status"] = map[string]any{"phase": "Ready"} }

// begunWidget creates the Widget that most of these cases are about.
func (r *Run) begunWidget() *unstructured.Unstructured {
	w := r.widget("a", "w")
	_ = r.Create(w, owner)
	return w
}

// owner is who writes where a case is not about owners.
const owner = client.FieldOwner("case")

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
