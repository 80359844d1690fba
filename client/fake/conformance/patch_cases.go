// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

func patchCases() []Case {
	var cases []Case
	for _, f := range writeForms {
		for _, p := range patchVariants {
			cases = append(cases, Case{"patch/" + f.name + "/" + p.name, answersCreated, func(r *Run) {
				obj := f.make(r, "a", "x")
				_ = r.Create(obj, client.FieldOwner("case"))
				_ = r.Patch(obj, p.patch(obj), append([]client.PatchOption{client.FieldOwner("case")}, p.opts...)...)
				_ = r.Get(f.make(r, "a", "x"))
			}})
		}
		cases = append(cases,
			Case{"patch/" + f.name + "/absent", 0, func(r *Run) {
				_ = r.Patch(f.make(r, "a", "no"), merge(`{}`))
				_ = r.Patch(f.make(r, "a", "no"), jsonPatch(`[]`))
			}},
			Case{"patch/" + f.name + "/metadata form", answersCreated, func(r *Run) {
				obj := f.make(r, "a", "x")
				_ = r.Create(obj, client.FieldOwner("case"))
				m := metadata(obj, f.gvk)
				_ = r.Patch(m, merge(`{"metadata":{"labels":{"x":"y"},"finalizers":["example.com/f"]}}`), client.FieldOwner("case"))
				_ = r.Get(f.make(r, "a", "x"))
				_ = r.Patch(m, merge(`{"metadata":{"finalizers":null}}`), client.FieldOwner("case"))
			}},
			Case{"patch/" + f.name + "/last finalizer", answersCreated, func(r *Run) {
				obj := f.make(r, "a", "x")
				obj.SetFinalizers([]string{"example.com/f"})
				r.Made(obj)
				r.Hide("metadata.managedFields")
				_ = r.Delete(obj)
				_ = r.Patch(obj, merge(`{"metadata":{"finalizers":null}}`))
				_ = r.Get(obj)
			}},
		)
	}
	return append(cases, listPatchCases()...)
}

var patchVariants = []struct {
	name  string
	patch func(client.Object) client.Patch
	opts  []client.PatchOption
}{
	{"merge, labels", func(client.Object) client.Patch { return merge(`{"metadata":{"labels":{"x":"y"}}}`) }, nil},
	{"merge, remove", func(o client.Object) client.Patch {
		return contentPatch(o, `{"data":{"a":null}}`, `{"spec":{"size":null}}`)
	}, nil},
	{"merge, nothing", func(client.Object) client.Patch { return merge(`{}`) }, nil},
	{"merge, same", func(o client.Object) client.Patch {
		return contentPatch(o, `{"data":{"a":"1"}}`, `{"spec":{"size":1}}`)
	}, nil},
	{"merge, not JSON", func(client.Object) client.Patch { return merge(`{`) }, nil},
	{"merge, no object", func(client.Object) client.Patch { return merge(`[]`) }, nil},
	{"merge, name", func(client.Object) client.Patch { return merge(`{"metadata":{"name":"other"}}`) }, nil},
	{"merge, namespace", func(client.Object) client.Patch { return merge(`{"metadata":{"namespace":"other"}}`) }, nil},
	{"merge, UID", func(client.Object) client.Patch { return merge(`{"metadata":{"uid":"other"}}`) }, nil},
	{"merge, version", func(client.Object) client.Patch { return merge(`{"metadata":{"resourceVersion":"1"}}`) }, nil},
	{"merge, version null", func(client.Object) client.Patch {
		return merge(`{"metadata":{"resourceVersion":null,"labels":{"x":"y"}}}`)
	}, nil},
	{"merge, wrong type", func(client.Object) client.Patch { return merge(`{"metadata":{"labels":5}}`) }, nil},
	{"merge, finalizers", func(client.Object) client.Patch { return merge(`{"metadata":{"finalizers":["example.com/f"]}}`) }, nil},
	{"merge, dry run", func(client.Object) client.Patch { return merge(`{"metadata":{"labels":{"x":"y"}}}`) }, []client.PatchOption{client.DryRunAll}},
	{"merge, force", func(client.Object) client.Patch { return merge(`{}`) }, []client.PatchOption{client.ForceOwnership}},
	{"merge, managedFields cleared", func(client.Object) client.Patch { return merge(`{"metadata":{"managedFields":[{}]}}`) }, nil},
	{"merge, generation", func(client.Object) client.Patch { return merge(`{"metadata":{"generation":77}}`) }, nil},
	{"merge, deletionTimestamp", func(client.Object) client.Patch {
		return merge(`{"metadata":{"deletionTimestamp":"2001-01-01T00:00:00Z"}}`)
	}, nil},
	{"JSON, add", func(client.Object) client.Patch {
		return jsonPatch(`[{"op":"add","path":"/metadata/labels","value":{"x":"y"}}]`)
	}, nil},
	{"JSON, test that fails", func(client.Object) client.Patch {
		return jsonPatch(`[{"op":"test","path":"/metadata/name","value":"z"}]`)
	}, nil},
	{"JSON, remove what is not there", func(client.Object) client.Patch {
		return jsonPatch(`[{"op":"remove","path":"/metadata/labels/x"}]`)
	}, nil},
	{"JSON, not JSON", func(client.Object) client.Patch { return jsonPatch(`[`) }, nil},
	{"JSON, no list", func(client.Object) client.Patch { return jsonPatch(`{}`) }, nil},
	{"JSON, empty", func(client.Object) client.Patch { return jsonPatch(`[]`) }, nil},
	{"JSON, unknown operation", func(client.Object) client.Patch { return jsonPatch(`[{"op":"fly","path":"/x"}]`) }, nil},
	{"strategic, labels", func(client.Object) client.Patch { return strategic(`{"metadata":{"labels":{"x":"y"}}}`) }, nil},
	{"strategic, not JSON", func(client.Object) client.Patch { return strategic(`{`) }, nil},
	{"unknown type", func(client.Object) client.Patch {
		return client.RawPatch(types.PatchType("application/example"), []byte(`{}`))
	}, nil},
	{"from a copy", func(o client.Object) client.Patch {
		before := o.DeepCopyObject().(client.Object)
		changeContent(o)
		return client.MergeFrom(before)
	}, nil},
	{"from a copy with lock", func(o client.Object) client.Patch {
		before := o.DeepCopyObject().(client.Object)
		changeContent(o)
		return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}, nil},
	{"from an old copy with lock", func(o client.Object) client.Patch {
		before := o.DeepCopyObject().(client.Object)
		before.SetResourceVersion("1")
		changeContent(o)
		return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}, nil},
}

// contentPatch is one patch for a ConfigMap and another for a Widget.
func contentPatch(o client.Object, configMap, widget string) client.Patch {
	if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == WidgetKind.Kind {
		return merge(widget)
	}
	return merge(configMap)
}

// listPatchCases patch lists, which is where the kinds of patches differ.
func listPatchCases() []Case {
	begin := func(r *Run) *appsv1.ReplicaSet {
		rs := r.replicaSet("x", 1)
		r.Made(rs)
		r.hide = []string{"metadata.managedFields"}
		return rs
	}
	containers := func(r *Run, rs *appsv1.ReplicaSet) {
		var all []string
		for _, c := range rs.Spec.Template.Spec.Containers {
			all = append(all, c.Name+"="+c.Image)
		}
		r.Say("containers", all)
	}
	patches := map[string]client.Patch{
		"strategic, add":    strategic(`{"spec":{"template":{"spec":{"containers":[{"name":"d","image":"j"}]}}}}`),
		"strategic, change": strategic(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"j"}]}}}}`),
		"strategic, delete": strategic(`{"spec":{"template":{"spec":{"containers":[{"name":"c","$patch":"delete"},{"name":"d","image":"j"}]}}}}`),
		"merge":             merge(`{"spec":{"template":{"spec":{"containers":[{"name":"d","image":"j"}]}}}}`),
		"JSON":              jsonPatch(`[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"d","image":"j"}}]`),
	}
	var cases []Case
	for _, name := range sortedKeys(patches) {
		cases = append(cases, Case{"patch/list/" + name, answersCreated, func(r *Run) {
			rs := begin(r)
			err := r.C.Patch(r.ctx, rs, patches[name])
			r.Say("generation", rs.Generation)
			r.Say("error", err != nil)
			containers(r, rs)
		}})
	}
	return append(cases, Case{"patch/owner references by UID", answersCreated, func(r *Run) {
		owner := func(uid types.UID) metav1.OwnerReference {
			return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: string(uid), UID: uid, BlockOwnerDeletion: ptr.To(false)}
		}
		owned := r.configMap("a", "x")
		owned.Finalizers = []string{"example.com/keep"}
		owned.OwnerReferences = []metav1.OwnerReference{owner("one")}
		r.Made(owned)
		r.Hide("metadata.managedFields", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds", "metadata.resourceVersion")
		other := owned.DeepCopy()
		other.OwnerReferences = []metav1.OwnerReference{owner("two")}
		patch := client.StrategicMergeFrom(owned.DeepCopy())
		_ = r.Patch(other, patch)
		_ = r.Patch(&corev1.ConfigMap{ObjectMeta: r.meta("a", "x")}, merge(`{"metadata":{"finalizers":null}}`))
	}})
}
