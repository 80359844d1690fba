// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
)

func readCases() []Case {
	var cases []Case
	for _, f := range writeForms {
		cases = append(cases,
			Case{"get/" + f.name, answersCreated, func(r *Run) {
				r.Made(f.make(r, "a", "x"))
				r.Hide("metadata.managedFields")
				_ = r.Get(f.make(r, "a", "x"))
				_ = r.Get(f.make(r, "b", "x"))
				_ = r.Get(f.make(r, "a", "no"))
			}},
			Case{"get/" + f.name + "/metadata", answersCreated, func(r *Run) {
				obj := f.make(r, "a", "x")
				obj.SetLabels(map[string]string{"x": "y"})
				r.Made(obj)
				r.Hide("metadata.managedFields")
				_ = r.Get(metadata(obj, f.gvk))
				_ = r.Get(metadata(f.make(r, "a", "no"), f.gvk))
			}},
			Case{"get/" + f.name + "/into a used object", answersCreated, func(r *Run) {
				r.Made(f.make(r, "a", "x"))
				r.Hide("metadata.managedFields")
				used := f.make(r, "a", "x")
				used.SetLabels(map[string]string{"left": "over"})
				used.SetFinalizers([]string{"example.com/left-over"})
				_ = r.Get(used)
			}},
		)
	}
	return append(cases,
		Case{"get/unknown kind", fake.Validation, func(r *Run) {
			u := r.widget("a", "x")
			u.SetKind("Gizmo")
			_ = r.Get(u)
		}},
		Case{"get/no kind", 0, func(r *Run) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetName("x")
			_ = r.Get(u)
			_ = r.Get(&metav1.PartialObjectMetadata{ObjectMeta: r.meta("a", "x")})
		}},
	)
}

// scopeCases are CA-2: a namespace that is given for a kind without one is not looked at.
func scopeCases() []Case {
	role := func(r *Run, namespace, name string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace(namespace), Name: r.Name(name), Labels: map[string]string{"t": r.id}}}
	}
	kind := rbacv1.SchemeGroupVersion.WithKind("ClusterRole")
	return []Case{
		{"scope/get", answersCreated, func(r *Run) {
			r.Hide("metadata.managedFields", "metadata.labels")
			obj := role(r, "", "cr1")
			r.Made(obj)
			defer func() { _ = r.Delete(obj) }()
			for _, ns := range []string{"", "a", "b"} {
				_ = r.Get(role(r, ns, "cr1"))
				_ = r.Get(metadata(role(r, ns, "cr1"), kind))
				u := &unstructured.Unstructured{}
				u.SetGroupVersionKind(kind)
				u.SetName(obj.Name)
				u.SetNamespace(r.namespace(ns))
				_ = r.Get(u)
			}
		}},
		{"scope/list", answersCreated, func(r *Run) {
			r.Hide("metadata.managedFields", "metadata.labels")
			obj := role(r, "", "cr1")
			r.Made(obj)
			defer func() { _ = r.Delete(obj) }()
			for _, ns := range []string{"", "a"} {
				_ = r.List(&rbacv1.ClusterRoleList{}, client.InNamespace(r.namespace(ns)), client.MatchingLabels{"t": r.id})
				_ = r.List(&rbacv1.ClusterRoleList{}, client.InNamespace(r.namespace(ns)), client.MatchingFields{"metadata.name": obj.Name})
			}
		}},
		{"scope/write", answersCreated, func(r *Run) {
			r.Hide("metadata.managedFields", "metadata.labels")
			obj := role(r, "a", "cr1")
			_ = r.Create(obj)
			obj.Namespace = r.namespace("a")
			obj.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}
			_ = r.Update(obj)
			obj.Namespace = r.namespace("b")
			_ = r.Patch(obj, merge(`{"metadata":{"annotations":{"x":"y"}}}`))
			obj.Namespace = r.namespace("b")
			_ = r.Delete(obj)
		}},
	}
}
