// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
)

const (
	me  = client.FieldOwner("me")
	you = client.FieldOwner("you")
)

// applied is what an apply is tried on: two fields of a kind, and two values for them.
type applied struct {
	form
	field    string
	a, b     string
	one, two any
}

func (s *applied) of(r *Run, content map[string]any) *unstructured.Unstructured {
	return config(s.gvk, s.make(r, "a", "x"), map[string]any{s.field: content})
}

func applyCases() []Case {
	var cases []Case
	for _, s := range []*applied{
		{writeForms[0], "data", "a", "b", "1", "2"},
		{writeForms[2], "spec", "size", "big", int64(1), int64(2)},
	} {
		for _, story := range applyStories {
			needs := answersCreated
			if story.name == "absent namespace" {
				needs = fake.AllBehaviours
			}
			cases = append(cases, Case{"apply/" + s.name + "/" + story.name, needs, func(r *Run) { story.run(r, s) }})
		}
	}
	return append(cases, applyExtras...)
}

// applyStories are told of a ConfigMap and of a Widget.
var applyStories = []struct {
	name string
	run  func(r *Run, s *applied)
}{
	{"create", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		_ = r.Get(s.make(r, "a", "x"))
	}},
	{"again", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
	}},
	{"change", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		_ = r.Apply(s.of(r, map[string]any{s.a: s.two}), me)
	}},
	{"remove", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one, s.b: s.two}), me)
		_ = r.Apply(s.of(r, map[string]any{s.b: s.two}), me)
	}},
	{"remove all", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		_ = r.Apply(config(s.gvk, s.make(r, "a", "x"), map[string]any{}), me)
	}},
	{"conflict", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		_ = r.Apply(s.of(r, map[string]any{s.a: s.two}), you)
		_ = r.Get(s.make(r, "a", "x"))
	}},
	{"two conflicts", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one, s.b: s.one}), me)
		_ = r.Apply(s.of(r, map[string]any{s.a: s.two, s.b: s.two}), you)
	}},
	{"force", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		_ = r.Apply(s.of(r, map[string]any{s.a: s.two}), you, client.ForceOwnership)
	}},
	{"same value, two owners", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), you)
		_ = r.Apply(s.of(r, map[string]any{s.b: s.two}), me)
		_ = r.Apply(s.of(r, map[string]any{s.b: s.two}), you)
	}},
	{"conflict with an update", func(r *Run, s *applied) {
		obj := s.make(r, "a", "x")
		_ = r.Create(obj, client.FieldOwner("maker"))
		_ = r.Apply(s.of(r, map[string]any{s.a: s.two}), me)
		_ = r.Apply(s.of(r, map[string]any{s.a: s.two}), me, client.ForceOwnership)
	}},
	{"update takes a field over", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		obj := s.make(r, "a", "x")
		_ = r.Get(obj)
		changeContent(obj)
		_ = r.Update(obj, client.FieldOwner("updater"))
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
	}},
	{"patch beside an apply", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		_ = r.Patch(s.make(r, "a", "x"), merge(`{"metadata":{"labels":{"x":"y"}}}`), client.FieldOwner("patcher"))
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
	}},
	{"no owner", func(r *Run, s *applied) { _ = r.Apply(s.of(r, map[string]any{s.a: s.one})) }},
	{"dry run", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me, client.DryRunAll)
		_ = r.Get(s.make(r, "a", "x"))
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		_ = r.Apply(s.of(r, map[string]any{s.a: s.two}), me, client.DryRunAll)
		_ = r.Get(s.make(r, "a", "x"))
	}},
	{"old version", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		c := s.of(r, map[string]any{s.a: s.two})
		c.SetResourceVersion("1")
		_ = r.Apply(c, me)
	}},
	{"version of an absent object", func(r *Run, s *applied) {
		c := s.of(r, map[string]any{s.a: s.two})
		c.SetResourceVersion("1")
		_ = r.Apply(c, me)
	}},
	{"UID of an absent object", func(r *Run, s *applied) {
		c := s.of(r, map[string]any{s.a: s.two})
		c.SetUID("other")
		_ = r.Apply(c, me)
	}},
	{"other UID", func(r *Run, s *applied) {
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
		c := s.of(r, map[string]any{s.a: s.two})
		c.SetUID("other")
		_ = r.Apply(c, me)
	}},
	{"managedFields given", func(r *Run, s *applied) {
		c := s.of(r, map[string]any{s.a: s.one})
		_ = unstructured.SetNestedSlice(c.Object, []any{map[string]any{"manager": "x", "operation": "Apply"}}, "metadata", "managedFields")
		_ = r.Apply(c, me)
	}},
	{"absent namespace", func(r *Run, s *applied) {
		c := s.of(r, map[string]any{s.a: s.one})
		c.SetNamespace("no-such-namespace")
		_ = r.Apply(c, me)
	}},
	{"labels and finalizers", func(r *Run, s *applied) {
		c := s.of(r, map[string]any{s.a: s.one})
		c.SetLabels(map[string]string{"x": "y"})
		c.SetFinalizers([]string{"example.com/f"})
		_ = r.Apply(c, me)
		other := s.of(r, map[string]any{s.b: s.two})
		other.SetFinalizers([]string{"example.com/g"})
		_ = r.Apply(other, you)
		_ = r.Apply(s.of(r, map[string]any{s.a: s.one}), me)
	}},
}

var applyExtras = []Case{
	{"apply/unknown kind", fake.Validation, func(r *Run) {
		c := config(WidgetKind, r.widget("a", "x"), map[string]any{})
		c.SetKind("Gizmo")
		_ = r.Apply(c, me)
	}},
	{"apply/no name", 0, func(r *Run) {
		c := config(WidgetKind, r.widget("a", ""), map[string]any{})
		_ = r.Apply(c, me)
	}},
	{"apply/list by key", answersCreated, func(r *Run) {
		container := func(name, image string) map[string]any { return map[string]any{"name": name, "image": image} }
		of := func(containers ...any) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet",
				"metadata": map[string]any{"namespace": r.Name("a"), "name": "x"},
				"spec": map[string]any{"replicas": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"app": "x"}},
					"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "x"}}, "spec": map[string]any{"containers": containers}}}}}
		}
		r.Hide("spec.template", "metadata.managedFields")
		c := of(container("c", "i"))
		_ = r.Apply(c, me)
		other := of(container("d", "j"))
		_ = r.Apply(other, you)
		list, _, _ := unstructured.NestedSlice(other.Object, "spec", "template", "spec", "containers")
		r.Say("containers", len(list))
		_ = r.Apply(of(container("c", "other")), you)
	}},
}
