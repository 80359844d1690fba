// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
)

const watchNeeds = answersCreated | fake.InitialEvents

func watchCases() []Case {
	var cases []Case
	for _, f := range listForms[:3] {
		cases = append(cases,
			Case{"watch/" + f.name + "/all", watchNeeds, func(r *Run) {
				r.Hide("metadata.managedFields")
				w := r.Watch(f.make(), client.InNamespace(r.Name("a")), client.MatchingFields{"metadata.name": "c"})
				life(r)
				r.Events(w, 6)
			}},
			Case{"watch/" + f.name + "/by label", watchNeeds, func(r *Run) {
				r.Hide("metadata.managedFields")
				w := r.Watch(f.make(), client.InNamespace(r.Name("a")), client.MatchingLabels{"app": "x"})
				life(r)
				r.Events(w, 5)
			}},
			Case{"watch/" + f.name + "/other namespace", watchNeeds, func(r *Run) {
				r.Hide("metadata.managedFields")
				w := r.Watch(f.make(), client.InNamespace(r.Name("b")), client.MatchingLabels{"app": "x"})
				life(r)
				mark := r.configMap("b", "mark")
				mark.Labels = map[string]string{"app": "x"}
				r.Made(mark)
				r.Events(w, 1)
			}},
		)
	}
	return append(cases, watchExtras...)
}

var watchExtras = []Case{
	{"watch/begins with what is there", watchNeeds, func(r *Run) {
		r.Hide("metadata.managedFields")
		for _, n := range []string{"one", "two"} {
			c := r.configMap("a", n)
			c.Labels = map[string]string{"app": "x"}
			r.Made(c)
		}
		w := r.Watch(&corev1.ConfigMapList{}, client.InNamespace(r.Name("a")), client.MatchingLabels{"app": "x"})
		r.Events(w, 2)
	}},
	{"watch/goes on from a version", answersCreated, func(r *Run) {
		r.Hide("metadata.managedFields")
		first := r.widget("a", "first")
		r.Made(first)
		r.Made(r.widget("a", "second"))
		_ = r.Delete(first)
		w := r.Watch(unstructuredList(WidgetKind), client.InNamespace(r.Name("a")),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: first.GetResourceVersion()}})
		r.Events(w, 2)
	}},
	{"watch/streams a list", answersCreated, func(r *Run) {
		r.Hide("metadata.managedFields", "metadata.resourceVersion")
		r.Made(r.widget("a", "first"))
		w := r.Watch(unstructuredList(WidgetKind), client.InNamespace(r.Name("a")), &client.ListOptions{Raw: &metav1.ListOptions{
			SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true}})
		r.Events(w, 2)
	}},
	{"watch/last finalizer", watchNeeds, func(r *Run) {
		r.Hide("metadata.managedFields")
		w := r.Watch(unstructuredList(WidgetKind), client.InNamespace(r.Name("a")))
		obj := r.widget("a", "x")
		obj.SetFinalizers([]string{"example.com/f"})
		r.Made(obj)
		_ = r.Delete(obj)
		_ = r.Patch(obj, merge(`{"metadata":{"finalizers":null}}`))
		r.Events(w, 3)
	}},
}

// life is ST-2: an object comes to match, changes, ceases to match, and goes.
func life(r *Run) {
	c := r.configMap("a", "c")
	c.Labels = map[string]string{"app": "x"}
	r.Made(c)
	for _, change := range []func(){
		func() { c.Data["a"] = "changed" },
		func() { c.Labels = nil },
		func() { c.Data["a"] = "changed again" },
		func() { c.Labels = map[string]string{"app": "x"} },
	} {
		change()
		if err := r.C.Update(r.ctx, c); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.C.Delete(r.ctx, c); err != nil {
		r.t.Fatal(err)
	}
}
