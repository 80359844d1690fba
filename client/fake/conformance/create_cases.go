// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
)

// createCases make each mistake and each use of a create, in each form.
func createCases() []Case {
	var cases []Case
	for _, f := range writeForms {
		for _, v := range createVariants {
			cases = append(cases, Case{"create/" + f.name + "/" + v.name, v.needs, func(r *Run) {
				obj := f.make(r, "a", "x")
				v.change(obj)
				if r.Create(obj, append([]client.CreateOption{client.FieldOwner("case")}, v.opts...)...) == nil {
					_ = r.Get(obj)
				}
			}})
		}
		cases = append(cases,
			Case{"create/" + f.name + "/exists", 0, func(r *Run) {
				r.Made(f.make(r, "a", "x"))
				_ = r.Create(f.make(r, "a", "x"))
				_ = r.Create(f.make(r, "a", "x"), client.DryRunAll)
			}},
			Case{"create/" + f.name + "/terminating namespace", fake.Namespaces | answersCreated, func(r *Run) {
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.Name("bye")}}
				r.Made(ns)
				keep := f.make(r, "bye", "keep")
				keep.SetFinalizers([]string{"example.com/f"})
				r.Made(keep)
				if err := r.C.Delete(r.ctx, ns); err != nil {
					r.t.Fatal(err)
				}
				_ = r.Create(f.make(r, "bye", "x"))
				if err := r.C.Patch(r.ctx, keep, merge(`{"metadata":{"finalizers":null}}`)); err != nil {
					r.t.Fatal(err)
				}
			}},
		)
	}
	return append(cases, createExtras...)
}

type createVariant struct {
	name   string
	needs  fake.Behaviour
	change func(client.Object)
	opts   []client.CreateOption
}

var createVariants = []createVariant{
	{"plain", answersCreated, func(client.Object) {}, nil},
	{"labels and annotations", answersCreated, func(o client.Object) {
		o.SetLabels(map[string]string{"x": "y"})
		o.SetAnnotations(map[string]string{"example.com/note": "a b"})
		o.SetFinalizers([]string{"example.com/f"})
	}, nil},
	{"generateName", answersCreated, func(o client.Object) { o.SetName(""); o.SetGenerateName("gen-") }, nil},
	{"long generateName", answersCreated, func(o client.Object) { o.SetName(""); o.SetGenerateName(longName) }, nil},
	{"no name", fake.Validation, func(o client.Object) { o.SetName("") }, nil},
	{"with a resourceVersion", 0, func(o client.Object) { o.SetResourceVersion("5") }, nil},
	{"with a UID", answersCreated, func(o client.Object) { o.SetUID("mine") }, nil},
	{"with a generation", answersCreated, func(o client.Object) { o.SetGeneration(7) }, nil},
	{"with a deletionTimestamp", answersCreated, func(o client.Object) {
		o.SetDeletionTimestamp(ptr.To(metav1.NewTime(time.Unix(0, 0))))
		o.SetDeletionGracePeriodSeconds(ptr.To[int64](5))
	}, nil},
	{"with a creationTimestamp", answersCreated, func(o client.Object) { o.SetCreationTimestamp(metav1.NewTime(time.Unix(0, 0))) }, nil},
	{"bad name", fake.Validation, func(o client.Object) { o.SetName("Bad_Name") }, nil},
	{"bad label", fake.Validation, func(o client.Object) { o.SetLabels(map[string]string{"bad label!": "x"}) }, nil},
	{"bad label value", fake.Validation, func(o client.Object) { o.SetLabels(map[string]string{"x": "no spaces"}) }, nil},
	{"bad annotation", fake.Validation, func(o client.Object) { o.SetAnnotations(map[string]string{"/": "x"}) }, nil},
	{"bad owner", fake.Validation, func(o client.Object) { o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "X"}}) }, nil},
	{"two controllers", fake.Validation, func(o client.Object) {
		one := metav1.OwnerReference{APIVersion: "v1", Kind: "X", Name: "x", UID: "1", Controller: ptr.To(true)}
		two := one
		two.UID, two.Name = "2", "y"
		o.SetOwnerReferences([]metav1.OwnerReference{one, two})
	}, nil},
	{"no namespace", fake.Namespaces, func(o client.Object) { o.SetNamespace("") }, nil},
	{"absent namespace", fake.Namespaces, func(o client.Object) { o.SetNamespace("no-such-namespace") }, nil},
	{"dry run", answersCreated, func(client.Object) {}, []client.CreateOption{client.DryRunAll}},
	{"bad dry run", 0, func(client.Object) {}, []client.CreateOption{&client.CreateOptions{DryRun: []string{"Some"}}}},
	{"with an owner", answersCreated, func(client.Object) {}, []client.CreateOption{client.FieldOwner("maker")}},
}

var createExtras = []Case{
	{"create/custom/status is dropped", answersCreated, func(r *Run) {
		w := r.widget("a", "x")
		w.Object["status"] = map[string]any{"phase": "Ready"}
		_ = r.Create(w, client.FieldOwner("case"))
	}},
	{"create/unknown field, strict", 0, func(r *Run) {
		u := asUnstructured(r.configMap("a", "x"))
		u.Object["dada"] = "x"
		_ = r.Create(u, client.FieldValidation("Strict"))
	}},
	{"create/unknown field, ignored", answersCreated, func(r *Run) {
		u := asUnstructured(r.configMap("a", "x"))
		u.Object["dada"] = "x"
		_ = r.Create(u, client.FieldValidation("Ignore"), client.FieldOwner("case"))
	}},
	{"create/wrong type", 0, func(r *Run) {
		u := asUnstructured(r.configMap("a", "x"))
		u.Object["data"] = "x"
		_ = r.Create(u)
	}},
	{"create/large numbers survive", answersCreated, func(r *Run) {
		w := r.widget("a", "x")
		w.Object["spec"] = map[string]any{"big": int64(9007199254740993), "extra": map[string]any{"f": 1.5, "n": int64(-9007199254740993)}}
		_ = r.Create(w, client.FieldOwner("case"))
		big, _, _ := unstructured.NestedInt64(w.Object, "spec", "big")
		r.Say("exactly", big == 9007199254740993)
		_ = r.Patch(w, merge(`{"metadata":{"labels":{"x":"y"}}}`), client.FieldOwner("case"))
		big, _, _ = unstructured.NestedInt64(w.Object, "spec", "big")
		r.Say("exactly", big == 9007199254740993)
	}},
	{"create/metadata form", 0, func(r *Run) {
		_ = r.Create(metadata(r.configMap("a", "x"), configMapKind))
	}},
	{"create/unknown kind", fake.Validation, func(r *Run) {
		u := r.widget("a", "x")
		u.SetKind("Gizmo")
		_ = r.Create(u)
	}},
	{"create/UID of each is its own", answersCreated, func(r *Run) {
		seen := map[types.UID]bool{}
		for _, n := range []string{"x", "y"} {
			o := r.configMap("a", n)
			_ = r.Create(o, client.FieldOwner("case"))
			seen[o.UID] = true
		}
		r.Say("UIDs", len(seen))
	}},
}
