// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
)

func deleteCases() []Case {
	var cases []Case
	for _, f := range writeForms {
		begin := func(r *Run, finalizers ...string) client.Object {
			obj := f.make(r, "a", "x")
			obj.SetFinalizers(finalizers)
			r.Made(obj)
			r.Hide("metadata.managedFields")
			_ = r.Get(obj)
			return obj
		}
		cases = append(cases,
			Case{"delete/" + f.name, answersCreated, func(r *Run) {
				obj := begin(r)
				_ = r.Delete(obj)
				_ = r.Get(obj)
				_ = r.Delete(obj)
			}},
			Case{"delete/" + f.name + "/by metadata", answersCreated, func(r *Run) {
				obj := begin(r)
				_ = r.Delete(metadata(obj, f.gvk))
				_ = r.Get(obj)
			}},
			Case{"delete/" + f.name + "/dry run", answersCreated, func(r *Run) {
				obj := begin(r)
				_ = r.Delete(obj, client.DryRunAll)
				_ = r.Get(obj)
			}},
			Case{"delete/" + f.name + "/preconditions", answersCreated, func(r *Run) {
				obj := begin(r)
				_ = r.Delete(obj, client.Preconditions{UID: ptr.To(types.UID("other"))})
				_ = r.Delete(obj, client.Preconditions{ResourceVersion: ptr.To("1")})
				_ = r.Delete(obj, client.Preconditions{UID: ptr.To(obj.GetUID()), ResourceVersion: ptr.To("1")})
				_ = r.Get(obj)
				_ = r.Delete(obj, client.Preconditions{UID: ptr.To(obj.GetUID()), ResourceVersion: ptr.To(obj.GetResourceVersion())})
				_ = r.Get(obj)
			}},
			Case{"delete/" + f.name + "/recreated", answersCreated, func(r *Run) {
				obj := begin(r)
				first := obj.GetUID()
				_ = r.Delete(obj)
				again := f.make(r, "a", "x")
				r.Made(again)
				_ = r.Delete(again, client.Preconditions{UID: &first})
				stale := f.make(r, "a", "x")
				stale.SetUID(first)
				stale.SetResourceVersion(again.GetResourceVersion())
				_ = r.Update(stale)
				_ = r.Get(again)
			}},
			Case{"delete/" + f.name + "/finalizer", answersCreated, func(r *Run) {
				obj := begin(r, "example.com/f")
				_ = r.Delete(obj)
				_ = r.Get(obj)
				_ = r.Delete(obj)
				_ = r.Delete(obj, client.GracePeriodSeconds(0))
				_ = r.Get(obj)
				obj.SetFinalizers(nil)
				_ = r.Update(obj)
				_ = r.Get(obj)
			}},
			Case{"delete/" + f.name + "/grace period", answersCreated, func(r *Run) {
				obj := begin(r)
				_ = r.Delete(obj, client.GracePeriodSeconds(100))
				_ = r.Get(obj)
			}},
		)
	}
	return append(cases, deleteAllCases()...)
}

// deleteAllCases are CL-1 (1) to (3) and what (4) does on the server.
func deleteAllCases() []Case {
	begin := func(r *Run) {
		for _, o := range []struct{ ns, name, label string }{{"a", "k1", "1"}, {"a", "k2", "1"}, {"a", "k3", "2"}, {"b", "k4", "1"}} {
			c := r.configMap(o.ns, o.name)
			c.Labels = map[string]string{"l": o.label, "run": r.id}
			if o.name == "k2" {
				c.Finalizers = []string{"example.com/f"}
			}
			r.Made(c)
			w := r.widget(o.ns, o.name)
			w.SetLabels(c.Labels)
			w.SetFinalizers(c.Finalizers)
			r.Made(w)
		}
		r.Hide("metadata.managedFields", "metadata.labels.run")
	}
	left := func(r *Run) {
		_ = r.List(&corev1.ConfigMapList{}, client.MatchingLabels{"run": r.id})
		ws := &metav1.PartialObjectMetadataList{}
		ws.SetGroupVersionKind(WidgetKind.GroupVersion().WithKind("WidgetList"))
		_ = r.List(ws, client.MatchingLabels{"run": r.id})
	}
	needs := answersCreated | fake.Namespaces
	return []Case{
		{"delete all/CL-1 (1): no namespace", needs, func(r *Run) {
			begin(r)
			_ = r.DeleteAllOf(&corev1.ConfigMap{}, client.MatchingLabels{"run": r.id, "l": "1"})
			left(r)
		}},
		{"delete all/CL-1 (2): no namespace, custom kind", needs, func(r *Run) {
			begin(r)
			_ = r.DeleteAllOf(NewWidget(), client.MatchingLabels{"run": r.id, "l": "1"})
			left(r)
		}},
		{"delete all/CL-1 (3): namespaces", needs, func(r *Run) {
			_ = r.DeleteAllOf(&corev1.Namespace{}, client.MatchingLabels{"run": r.id})
		}},
		{"delete all/CL-1 (4): in a namespace", answersCreated, func(r *Run) {
			begin(r)
			_ = r.DeleteAllOf(&corev1.ConfigMap{}, client.InNamespace(r.Name("a")), client.MatchingLabels{"run": r.id, "l": "1"})
			_ = r.DeleteAllOf(NewWidget(), client.InNamespace(r.Name("a")), client.MatchingLabels{"run": r.id, "l": "1"})
			left(r)
		}},
		{"delete all/dry run", answersCreated, func(r *Run) {
			begin(r)
			_ = r.DeleteAllOf(&corev1.ConfigMap{}, client.InNamespace(r.Name("a")), client.MatchingLabels{"run": r.id}, client.DryRunAll)
			left(r)
		}},
		{"delete all/nothing there", answersCreated, func(r *Run) {
			_ = r.DeleteAllOf(&corev1.Secret{}, client.InNamespace(r.Name("a")))
		}},
		{"delete all/by name", answersCreated, func(r *Run) {
			begin(r)
			_ = r.DeleteAllOf(&corev1.ConfigMap{}, client.InNamespace(r.Name("a")), client.MatchingFields{"metadata.name": "k3"})
			left(r)
		}},
	}
}

// podCases are FK-6: pods are given time to end.
var podCases = []Case{
	{"pod/FK-6: scheduled", answersCreated | fake.GracefulPods, func(r *Run) {
		w := r.Watch(&corev1.PodList{}, client.InNamespace(r.Name("a")))
		p := r.begunPod("p1", "n1", "")
		_ = r.Delete(p)
		_ = r.Get(p)
		_ = r.Delete(p)
		_ = r.Get(p)
		_ = r.Delete(p, client.GracePeriodSeconds(0))
		_ = r.Get(p)
		r.Events(w, 4)
	}},
	{"pod/FK-6: not scheduled", answersCreated | fake.GracefulPods, func(r *Run) {
		p := r.begunPod("p2", "", "")
		_ = r.Delete(p)
		_ = r.Get(p)
	}},
	{"pod/FK-6: ended", answersCreated | fake.GracefulPods, func(r *Run) {
		p := r.begunPod("p3", "n1", corev1.PodSucceeded)
		_ = r.Delete(p)
		_ = r.Get(p)
	}},
	{"pod/grace period of the delete", answersCreated | fake.GracefulPods, func(r *Run) {
		p := r.begunPod("p", "n1", "")
		_ = r.Delete(p, client.GracePeriodSeconds(100))
		_ = r.Get(p)
		_ = r.Delete(p, client.GracePeriodSeconds(200))
		_ = r.Get(p)
		_ = r.Delete(p, client.GracePeriodSeconds(10))
		_ = r.Get(p)
		_ = r.Delete(p, client.GracePeriodSeconds(0))
		_ = r.Get(p)
	}},
	{"pod/finalizer and grace period", answersCreated | fake.GracefulPods, func(r *Run) {
		p := r.pod("p")
		p.Spec.NodeName = "n1"
		p.Finalizers = []string{"example.com/f"}
		r.Made(p)
		r.Hide("metadata.managedFields", "metadata.generation")
		_ = r.Delete(p)
		_ = r.Get(p)
		_ = r.Patch(p, merge(`{"metadata":{"finalizers":null}}`))
		_ = r.Get(p)
		_ = r.Delete(p, client.GracePeriodSeconds(0))
		_ = r.Get(p)
	}},
	{"pod/evict", answersCreated | fake.GracefulPods, func(r *Run) {
		p := r.begunPod("p", "", "")
		_ = r.CreateSub("eviction", p, eviction(p))
		_ = r.Get(p)
		_ = r.CreateSub("eviction", p, eviction(p))
	}},
	{"pod/bind", answersCreated | fake.GracefulPods, func(r *Run) {
		p := r.begunPod("p", "", "")
		_ = r.CreateSub("binding", p, binding(p, "n1"))
		_ = r.Get(p)
		r.Say("node", p.Spec.NodeName)
		_ = r.CreateSub("binding", p, binding(p, "n2"))
		_ = r.Delete(p, client.GracePeriodSeconds(0))
	}},
}

// begunPod creates a pod, on a node or on none, and says how far it is.
func (r *Run) begunPod(name, node string, phase corev1.PodPhase) *corev1.Pod {
	p := r.pod(name)
	p.Spec.NodeName = node
	r.Made(p)
	r.Hide("metadata.managedFields", "metadata.generation")
	if phase != "" {
		p.Status.Phase = phase
		_ = r.UpdateStatus(p)
	}
	return p
}
