// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
)

func listCases() []Case {
	var cases []Case
	for _, f := range listForms {
		for _, l := range listVariants {
			cases = append(cases, Case{"list/" + f.name + "/" + l.name, answersCreated, func(r *Run) {
				r.tiers()
				_ = r.List(f.make(), l.opts(r)...)
			}})
		}
		cases = append(cases, Case{"list/" + f.name + "/pages", answersCreated, func(r *Run) {
			r.tiers()
			list := f.make()
			for {
				err := r.List(list, client.InNamespace(r.Name("a")), client.MatchingLabels{"run": r.id}, client.Limit(1), client.Continue(list.GetContinue()))
				if err != nil || list.GetContinue() == "" {
					return
				}
			}
		}})
	}
	return append(cases, listExtras...)
}

var listVariants = []struct {
	name string
	opts func(r *Run) []client.ListOption
}{
	{"all namespaces", func(r *Run) []client.ListOption { return []client.ListOption{client.MatchingLabels{"run": r.id}} }},
	{"one namespace", func(r *Run) []client.ListOption {
		return []client.ListOption{client.MatchingLabels{"run": r.id}, client.InNamespace(r.Name("a"))}
	}},
	{"absent namespace", func(r *Run) []client.ListOption {
		return []client.ListOption{client.InNamespace("no-such-namespace")}
	}},
	{"label is", func(r *Run) []client.ListOption { return []client.ListOption{selector(r, "tier=web")} }},
	{"label is not", func(r *Run) []client.ListOption { return []client.ListOption{selector(r, "tier!=web")} }},
	{"label in", func(r *Run) []client.ListOption { return []client.ListOption{selector(r, "tier in (web,x)")} }},
	{"label not in", func(r *Run) []client.ListOption { return []client.ListOption{selector(r, "tier notin (web,x)")} }},
	{"label exists", func(r *Run) []client.ListOption { return []client.ListOption{selector(r, "tier")} }},
	{"label does not exist", func(r *Run) []client.ListOption { return []client.ListOption{selector(r, "!tier")} }},
	{"name is", func(r *Run) []client.ListOption {
		return []client.ListOption{client.MatchingLabels{"run": r.id}, client.MatchingFields{"metadata.name": "k1"}}
	}},
	{"name is not", func(r *Run) []client.ListOption {
		return []client.ListOption{client.MatchingLabels{"run": r.id}, client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("metadata.name", "k1")}}
	}},
	{"namespace by field", func(r *Run) []client.ListOption {
		return []client.ListOption{client.MatchingLabels{"run": r.id}, client.MatchingFields{"metadata.namespace": r.Name("b")}}
	}},
	{"name and label", func(r *Run) []client.ListOption {
		return []client.ListOption{selector(r, "tier=web"), client.MatchingFields{"metadata.name": "k1"}, client.InNamespace(r.Name("b"))}
	}},
	{"nothing", func(*Run) []client.ListOption {
		return []client.ListOption{client.MatchingLabelsSelector{Selector: labels.Nothing()}}
	}},
	{"first page", func(r *Run) []client.ListOption {
		return []client.ListOption{client.InNamespace(r.Name("a")), client.MatchingLabels{"run": r.id}, client.Limit(2)}
	}},
	{"bad token", func(r *Run) []client.ListOption {
		return []client.ListOption{client.InNamespace(r.Name("a")), client.Limit(2), client.Continue("?")}
	}},
	{"exactly one page", func(r *Run) []client.ListOption {
		return []client.ListOption{client.InNamespace(r.Name("a")), client.MatchingLabels{"run": r.id}, client.Limit(3)}
	}},
}

var listExtras = []Case{
	{"list/remaining items", answersCreated, func(r *Run) {
		r.tiers()
		r.Hide("metadata.remainingItemCount")
		w := &unstructured.UnstructuredList{}
		w.SetGroupVersionKind(WidgetKind.GroupVersion().WithKind("WidgetList"))
		_ = r.C.List(r.ctx, w, client.InNamespace(r.Name("a")), client.Limit(1))
		r.Say("remaining", w.GetRemainingItemCount())
	}},
	{"list/unknown kind", fake.Validation, func(r *Run) {
		w := &unstructured.UnstructuredList{}
		w.SetGroupVersionKind(WidgetKind.GroupVersion().WithKind("GizmoList"))
		_ = r.List(w)
	}},
	{"list/field without index", 0, func(r *Run) {
		_ = r.List(&corev1.ConfigMapList{}, client.MatchingFields{"data.a": "1"})
	}},
	{"list/pods by node", answersCreated, func(r *Run) {
		r.Hide("metadata.managedFields", "metadata.generation")
		for _, n := range []string{"n1", "n2"} {
			p := r.pod("on-" + n)
			p.Spec.NodeName = n
			r.Made(p)
		}
		_ = r.List(&corev1.PodList{}, client.InNamespace(r.Name("a")), client.MatchingFields{"spec.nodeName": "n1"})
	}},
}

// tiers makes what the lists are about.
func (r *Run) tiers() {
	for _, o := range []struct{ ns, name, tier string }{
		{"a", "k1", "web"}, {"a", "k2", "db"}, {"a", "k3", ""}, {"b", "k1", "web"}, {"b", "k4", "db"},
	} {
		c := r.configMap(o.ns, o.name)
		c.Labels = map[string]string{"run": r.id}
		if o.tier != "" {
			c.Labels["tier"] = o.tier
		}
		r.Made(c)
		w := r.widget(o.ns, o.name)
		w.SetLabels(c.Labels)
		r.Made(w)
	}
	r.Hide("metadata.managedFields", "metadata.labels.run")
}

func selector(r *Run, text string) client.ListOption {
	s, err := labels.Parse(text + ",run=" + r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	return client.MatchingLabelsSelector{Selector: s}
}

type listForm struct {
	name string
	make func() client.ObjectList
}

var listForms = []listForm{
	{"typed", func() client.ObjectList { return &corev1.ConfigMapList{} }},
	{"unstructured", func() client.ObjectList { return unstructuredList(configMapKind) }},
	{"metadata", func() client.ObjectList { return metadataList(configMapKind) }},
	{"custom", func() client.ObjectList { return unstructuredList(WidgetKind) }},
	{"custom metadata", func() client.ObjectList { return metadataList(WidgetKind) }},
}

func unstructuredList(item schema.GroupVersionKind) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(item.GroupVersion().WithKind(item.Kind + "List"))
	return l
}

func metadataList(item schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(item.GroupVersion().WithKind(item.Kind + "List"))
	return l
}
