// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// form is one way to hold a ConfigMap.
type form struct {
	name string
	obj  func(ns, name string) client.Object
	list func() client.ObjectList
}

var forms = []form{
	{"typed", func(ns, name string) client.Object { return newConfigMap(ns, name, nil) }, func() client.ObjectList { return &corev1.ConfigMapList{} }},
	{"unstructured", func(ns, name string) client.Object {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "value"}}}
		u.SetNamespace(ns)
		u.SetName(name)
		return u
	}, func() client.ObjectList {
		l := &unstructured.UnstructuredList{}
		l.SetAPIVersion("v1")
		l.SetKind("ConfigMapList")
		return l
	}},
	{"metadata", func(ns, name string) client.Object {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	}, func() client.ObjectList {
		return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	}},
}

func newClient(t *testing.T) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(server, client.Options{})
	must(t, err)
	return c
}

// live is a case that has a live client and a namespace.
func live(name, why string, run func(t *testing.T, o *outcome, c client.WithWatch, ns string)) testCase {
	return testCase{"client", name, why, func(t *testing.T, o *outcome) { run(t, o, newClient(t), namespace(t)) }}
}

// inForms makes a case per form.
func inForms(name, why string, run func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form)) []testCase {
	var cases []testCase
	for _, f := range forms {
		cases = append(cases, live(name+" ("+f.name+")", why, func(t *testing.T, o *outcome, c client.WithWatch, ns string) { run(t, o, c, ns, f) }))
	}
	return cases
}

func clientCases() []testCase {
	return slices.Concat(readCases(), listCases(), writeCases(), patchCases(), deleteCases(), subresourceCases(), wrapperCases(), watchCases(), mistakeCases())
}

func items(t *testing.T, l client.ObjectList) string {
	t.Helper()
	objs, err := meta.ExtractList(l)
	must(t, err)
	var names []string
	for _, o := range objs {
		names = append(names, o.(metav1.Object).GetName())
	}
	return "[" + strings.Join(names, " ") + "]"
}

func readCases() []testCase {
	return slices.Concat(
		inForms("get an absent object", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form) {
			o.note("error", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "absent"}, f.obj("", "")))
		}),
		inForms("get a present object", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form) {
			configMap(t, ns, "a", map[string]string{"l": "1"})
			obj := f.obj("", "")
			o.note("error", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, obj))
			o.note("name", obj.GetName())
			o.note("labels", obj.GetLabels())
			o.note("has UID and version", obj.GetUID() != "" && obj.GetResourceVersion() != "")
		}),
		[]testCase{
			live("get into a used object", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				configMap(t, ns, "a", nil)
				used := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"old": "1"}}, Data: map[string]string{"old": "1"}}
				o.note("error", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, used))
				o.note("data", used.Data)
				o.note("annotations", used.Annotations)
			}),
			live("get into a typed object with a TypeMeta", "a typed object keeps the TypeMeta its caller gave it, for every verb alike", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				configMap(t, ns, "a", nil)
				cm := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
				o.note("error", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, cm))
				o.note("kind", cm.Kind)
			}),
			live("get without a name", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("error", c.Get(t.Context(), types.NamespacedName{Namespace: ns}, &corev1.ConfigMap{}))
			}),
			live("get of a cluster-scoped kind by a key with a namespace", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("error", c.Get(t.Context(), types.NamespacedName{Namespace: "whatever", Name: ns}, &corev1.Namespace{}))
			}),
			live("get at a version of the past", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				configMap(t, ns, "a", nil)
				var err error
				within(patience, func() bool { // the past may not have the object yet
					err = c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, &corev1.ConfigMap{}, &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}})
					return !apierrors.IsNotFound(err)
				})
				o.note("error", err)
			}),
			live("get a custom object", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				must(t, c.Create(t.Context(), widget(ns, "w")))
				u := &unstructured.Unstructured{}
				u.SetGroupVersionKind(widgetKind)
				o.note("error", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "w"}, u))
				size, _, _ := unstructured.NestedInt64(u.Object, "spec", "size")
				o.note("size", size)
			}),
			live("what the client knows of kinds", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				gvk, err := c.GroupVersionKindFor(&appsv1.Deployment{})
				o.note("kind of a Deployment", fmt.Sprint(gvk, " ", verdict(err)))
				scoped, err := c.IsObjectNamespaced(&corev1.Node{})
				o.note("is a Node namespaced", fmt.Sprint(scoped, " ", verdict(err)))
				scoped, err = c.IsObjectNamespaced(widget("", ""))
				o.note("is a Widget", fmt.Sprint(scoped, " ", verdict(err)))
				o.note("scheme is client-go's", c.Scheme() == scheme.Scheme)
			}),
		},
	)
}

func listCases() []testCase {
	three := func(t *testing.T, ns string) {
		for i, name := range []string{"c", "a", "b"} {
			configMap(t, ns, name, map[string]string{"n": fmt.Sprint(i)})
		}
	}
	return slices.Concat(
		inForms("list a namespace", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form) {
			three(t, ns)
			l := f.list()
			o.note("error", c.List(t.Context(), l, client.InNamespace(ns)))
			o.note("items", items(t, l))
		}),
		inForms("list pages", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form) {
			three(t, ns)
			l := f.list()
			o.note("error", c.List(t.Context(), l, client.InNamespace(ns), client.Limit(2)))
			o.note("items", items(t, l))
			o.note("goes on", l.GetContinue() != "")
			next := f.list()
			o.note("error", c.List(t.Context(), next, client.InNamespace(ns), client.Limit(2), client.Continue(l.GetContinue())))
			o.note("items", items(t, next))
		}),
		[]testCase{
			live("list by labels", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				three(t, ns)
				for _, opt := range []client.ListOption{client.MatchingLabels{"n": "1"}, client.HasLabels{"n"}, client.HasLabels{"m"},
					client.MatchingLabelsSelector{Selector: labels.Set{"n": "2"}.AsSelector()}} {
					var l corev1.ConfigMapList
					o.note("error", c.List(t.Context(), &l, client.InNamespace(ns), opt))
					o.note("items", named(l.Items))
				}
			}),
			live("list by two label options", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				configMap(t, ns, "a", map[string]string{"x": "1", "y": "1"})
				configMap(t, ns, "b", map[string]string{"x": "1"})
				var l corev1.ConfigMapList
				o.note("error", c.List(t.Context(), &l, client.InNamespace(ns), client.MatchingLabels{"x": "1"}, client.HasLabels{"y"}))
				o.note("items", named(l.Items))
			}),
			live("list by a field", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				three(t, ns)
				var l corev1.ConfigMapList
				o.note("error", c.List(t.Context(), &l, client.InNamespace(ns), client.MatchingFields{"metadata.name": "b"}))
				o.note("items", named(l.Items))
			}),
			live("list by a field that the server does not select by", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("error", c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(ns), client.MatchingFields{"data.key": "b"}))
			}),
			live("list by a selector that selects nothing", "labels.Nothing() is written as the empty string, which selects everything: Wherry sends nothing and answers nothing",
				func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
					three(t, ns)
					var l corev1.ConfigMapList
					o.note("error", c.List(t.Context(), &l, client.InNamespace(ns), client.MatchingLabelsSelector{Selector: labels.Nothing()}))
					o.note("items", len(l.Items))
				}),
			live("list by a name that is no label", "dropping the requirement would select more than was asked for", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				three(t, ns)
				var l corev1.ConfigMapList
				err := c.List(t.Context(), &l, client.InNamespace(ns), client.HasLabels{"not a label!"})
				o.note("refused", err != nil)
				o.note("items", len(l.Items))
			}),
			live("list an empty namespace", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				l := corev1.ConfigMapList{Items: []corev1.ConfigMap{{}}}
				o.note("error", c.List(t.Context(), &l, client.InNamespace(ns)))
				o.note("items", len(l.Items))
			}),
			live("list a cluster-scoped kind with a namespace", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				var l corev1.NamespaceList
				o.note("error", c.List(t.Context(), &l, client.InNamespace(ns), client.MatchingFields{"metadata.name": ns}))
				o.note("items", len(l.Items))
			}),
			live("list custom objects by the kind of one", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				must(t, c.Create(t.Context(), widget(ns, "w")))
				for _, kind := range []string{"WidgetList", "Widget"} {
					l := &unstructured.UnstructuredList{}
					l.SetGroupVersionKind(widgetKind.GroupVersion().WithKind(kind))
					o.note("error", c.List(t.Context(), l, client.InNamespace(ns)))
					o.note("items", items(t, l))
					o.note("kind", l.GetKind())
				}
			}),
		},
	)
}

func writeCases() []testCase {
	return slices.Concat(
		inForms("create", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form) {
			obj := f.obj(ns, "a")
			o.note("error", c.Create(t.Context(), obj))
			o.note("has UID and version", obj.GetUID() != "" && obj.GetResourceVersion() != "")
			o.note("stored", stored(t, ns, "a") != nil)
		}),
		inForms("update", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form) {
			before := configMap(t, ns, "a", nil)
			obj := f.obj(ns, "a")
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
			obj.SetLabels(map[string]string{"l": "1"})
			o.note("error", c.Update(t.Context(), obj))
			o.note("version went on", obj.GetResourceVersion() != before.ResourceVersion)
			o.note("labels", stored(t, ns, "a").Labels)
		}),
		inForms("update from an old version", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form) {
			configMap(t, ns, "a", nil)
			obj := f.obj(ns, "a")
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
			other := obj.DeepCopyObject().(client.Object)
			must(t, c.Patch(t.Context(), other, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"o":"1"}}}`))))
			obj.SetLabels(map[string]string{"l": "1"})
			o.note("error", c.Update(t.Context(), obj))
			o.note("labels", stored(t, ns, "a").Labels)
		}),
		[]testCase{
			live("create what exists", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				configMap(t, ns, "a", nil)
				err := c.Create(t.Context(), newConfigMap(ns, "a", nil))
				o.note("error", err)
				o.note("without AlreadyExists", client.IgnoreAlreadyExists(err))
			}),
			live("create with a name to generate", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				cm := newConfigMap(ns, "", nil)
				cm.GenerateName = "g-"
				o.note("error", c.Create(t.Context(), cm))
				o.note("name", strings.HasPrefix(cm.Name, "g-") && len(cm.Name) > 2)
			}),
			live("create in a namespace that is not there", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("error", c.Create(t.Context(), newConfigMap("no-such-namespace", "a", nil)))
			}),
			live("create without a namespace", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("error", c.Create(t.Context(), newConfigMap("", "a", nil)))
			}),
			live("create something invalid", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("error", c.Create(t.Context(), newConfigMap(ns, "Not A Name", nil)))
			}),
			live("dry-run create", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				cm := newConfigMap(ns, "a", nil)
				o.note("error", c.Create(t.Context(), cm, client.DryRunAll))
				o.note("has a UID", cm.UID != "")
				o.note("stored", stored(t, ns, "a") != nil)
			}),
			live("create as a field owner", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("error", c.Create(t.Context(), newConfigMap(ns, "a", nil), client.FieldOwner("me")))
				o.note("manager", stored(t, ns, "a").ManagedFields[0].Manager)
			}),
			live("create with unknown fields, strictly", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				w := widget(ns, "w")
				must(t, unstructured.SetNestedField(w.Object, "x", "spec", "unknown"))
				o.note("strict", c.Create(t.Context(), w.DeepCopy(), client.FieldValidation(metav1.FieldValidationStrict)))
				o.note("ignoring", c.Create(t.Context(), w.DeepCopy(), client.FieldValidation(metav1.FieldValidationIgnore)))
			}),
			live("update what is not there", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("error", c.Update(t.Context(), newConfigMap(ns, "a", nil)))
			}),
			live("update without a version", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				configMap(t, ns, "a", map[string]string{"l": "1"})
				o.note("a ConfigMap", c.Update(t.Context(), newConfigMap(ns, "a", nil)))
				o.note("labels", stored(t, ns, "a").Labels)
				must(t, c.Create(t.Context(), widget(ns, "w")))
				o.note("a Widget", c.Update(t.Context(), widget(ns, "w")))
			}),
			live("dry-run update", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				cm := configMap(t, ns, "a", nil)
				cm.Data = map[string]string{"new": "1"}
				o.note("error", c.Update(t.Context(), cm, client.DryRunAll))
				o.note("data", stored(t, ns, "a").Data)
			}),
			live("a failed write leaves the caller's object", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				configMap(t, ns, "a", nil)
				mine := newConfigMap(ns, "a", map[string]string{"mine": "1"})
				o.note("create", c.Create(t.Context(), mine))
				o.note("labels", mine.Labels)
				o.note("version", mine.ResourceVersion == "")
			}),
		},
	)
}

// document is JSON with its keys sorted.
func document(t *testing.T, b []byte) string {
	t.Helper()
	var v any
	must(t, json.Unmarshal(b, &v))
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}

func patchCases() []testCase {
	return slices.Concat(
		inForms("merge patch", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form) {
			configMap(t, ns, "a", map[string]string{"keep": "1"})
			obj := f.obj(ns, "a")
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
			before := obj.DeepCopyObject().(client.Object)
			obj.SetAnnotations(map[string]string{"n": "1"})
			o.note("error", c.Patch(t.Context(), obj, client.MergeFrom(before)))
			now := stored(t, ns, "a")
			o.note("annotations", now.Annotations)
			o.note("labels", now.Labels)
			o.note("data", now.Data)
		}),
		[]testCase{
			live("merge patch against an old version, with a lock", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				cm := configMap(t, ns, "a", nil)
				other := cm.DeepCopy()
				must(t, c.Patch(t.Context(), other, client.RawPatch(types.MergePatchType, []byte(`{"data":{"o":"1"}}`))))
				before := cm.DeepCopy()
				cm.Data["mine"] = "1"
				o.note("with a lock", c.Patch(t.Context(), cm.DeepCopy(), client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
				o.note("without", c.Patch(t.Context(), cm.DeepCopy(), client.MergeFrom(before)))
				o.note("data", stored(t, ns, "a").Data)
			}),
			live("what a merge patch contains", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				cm := newConfigMap(ns, "a", map[string]string{"l": "1"})
				before := cm.DeepCopy()
				cm.Labels, cm.Data["key"], cm.Data["new"] = nil, "other", "x"
				b, err := client.MergeFrom(before).Data(cm)
				o.note("patch", document(t, b))
				o.note("error", err)
				b, _ = client.MergeFrom(before).Data(before)
				o.note("of no change", document(t, b))
			}),
			live("what a strategic patch contains", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "1"}, {Name: "b", Image: "1"}}}}
				before := pod.DeepCopy()
				pod.Spec.Containers[1].Image = "2"
				b, err := client.StrategicMergeFrom(before).Data(pod)
				o.note("patch", document(t, b))
				o.note("error", err)
			}),
			live("strategic patch", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				rs := replicaSet(ns, "a")
				must(t, c.Create(t.Context(), rs))
				before := rs.DeepCopy()
				rs.Spec.Template.Spec.Containers = append(rs.Spec.Template.Spec.Containers, corev1.Container{Name: "d", Image: "i"})
				o.note("error", c.Patch(t.Context(), rs, client.StrategicMergeFrom(before)))
				o.note("containers", len(rs.Spec.Template.Spec.Containers))
			}),
			live("strategic patch of a custom object", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				w := widget(ns, "w")
				must(t, c.Create(t.Context(), w))
				o.note("error", c.Patch(t.Context(), w, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"size":2}}`))))
			}),
			live("JSON patch", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				cm := configMap(t, ns, "a", nil)
				o.note("error", c.Patch(t.Context(), cm, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/data/new","value":"1"}]`))))
				o.note("data", cm.Data)
				o.note("failing test", c.Patch(t.Context(), cm, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/data/new","value":"2"}]`))))
			}),
			live("patch what is not there", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("error", c.Patch(t.Context(), newConfigMap(ns, "a", nil), client.RawPatch(types.MergePatchType, []byte(`{}`))))
			}),
			live("dry-run patch", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				cm := configMap(t, ns, "a", nil)
				o.note("error", c.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"o":"1"}}`)), client.DryRunAll))
				o.note("answer", cm.Data)
				o.note("data", stored(t, ns, "a").Data)
			}),
			live("apply by two owners", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("first", c.Apply(t.Context(), applied(ns, "1"), client.FieldOwner("one")))
				o.note("second", c.Apply(t.Context(), applied(ns, "2"), client.FieldOwner("two")))
				o.note("second, by force", c.Apply(t.Context(), applied(ns, "2"), client.FieldOwner("two"), client.ForceOwnership))
				o.note("data", stored(t, ns, "a").Data)
			}),
			live("apply without an owner", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("refused", c.Apply(t.Context(), applied(ns, "1")) != nil)
			}),
			live("apply fills the caller's configuration", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": ns, "name": "a"}}}
				o.note("error", c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("one")))
				o.note("has a version", u.GetResourceVersion() != "")
			}),
			live("dry-run apply", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				o.note("error", c.Apply(t.Context(), applied(ns, "1"), client.FieldOwner("one"), client.DryRunAll))
				o.note("stored", stored(t, ns, "a") != nil)
			}),
		},
	)
}

// applied is a configuration of a ConfigMap "a".
func applied(ns, value string) runtime.ApplyConfiguration {
	return client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": ns, "name": "a"}, "data": map[string]any{"key": value},
	}})
}

// replicaSet is one whose pods nobody makes: its own controller is told to wait.
func replicaSet(ns, name string) *appsv1.ReplicaSet {
	l := map[string]string{"app": name}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: l},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
		},
	}
}

func pod(ns, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}

func deleteCases() []testCase {
	return slices.Concat(
		inForms("delete", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form) {
			configMap(t, ns, "a", nil)
			o.note("error", c.Delete(t.Context(), f.obj(ns, "a")))
			o.note("stored", stored(t, ns, "a") != nil)
			err := c.Delete(t.Context(), f.obj(ns, "a"))
			o.note("again", err)
			o.note("without NotFound", client.IgnoreNotFound(err))
		}),
		inForms("delete by labels", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form) {
			configMap(t, ns, "a", map[string]string{"x": "1"})
			configMap(t, ns, "b", nil)
			o.note("error", c.DeleteAllOf(t.Context(), f.obj("", ""), client.InNamespace(ns), client.MatchingLabels{"x": "1"}))
			o.note("left", storedNames(t, ns))
		}),
		[]testCase{
			live("delete under preconditions", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				cm := configMap(t, ns, "a", nil)
				o.note("another UID", c.Delete(t.Context(), cm, client.Preconditions{UID: new(types.UID("another"))}))
				o.note("an old version", c.Delete(t.Context(), cm, client.Preconditions{ResourceVersion: new("1")}))
				o.note("its own", c.Delete(t.Context(), cm, client.Preconditions{UID: &cm.UID, ResourceVersion: &cm.ResourceVersion}))
			}),
			live("delete with a finalizer", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				cm := newConfigMap(ns, "a", nil)
				cm.Finalizers = []string{"example.com/f"}
				must(t, c.Create(t.Context(), cm))
				o.note("error", c.Delete(t.Context(), cm))
				o.note("terminates", stored(t, ns, "a").DeletionTimestamp != nil)
				must(t, c.Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
				cm.Finalizers = nil
				o.note("last finalizer", c.Update(t.Context(), cm))
				o.note("stored", stored(t, ns, "a") != nil)
			}),
			live("dry-run delete", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				cm := configMap(t, ns, "a", nil)
				o.note("error", c.Delete(t.Context(), cm, client.DryRunAll))
				o.note("stored", stored(t, ns, "a") != nil)
			}),
			live("delete a pod with a grace period", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				must(t, c.Create(t.Context(), pod(ns, "a")))
				o.note("grace 0", c.Delete(t.Context(), pod(ns, "a"), client.GracePeriodSeconds(0)))
				o.note("then", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, &corev1.Pod{}))
			}),
			live("delete by a selector that selects nothing", "labels.Nothing() is written as the empty string: controller-runtime deletes everything, Wherry nothing",
				func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
					configMap(t, ns, "a", nil)
					o.note("error", c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(ns), client.MatchingLabelsSelector{Selector: labels.Nothing()}))
					o.note("left", storedNames(t, ns))
				}),
			live("delete a collection without a namespace", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				configMap(t, ns, "a", nil)
				o.note("error", c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.MatchingLabels{"nobody": "has"}))
			}),
			live("raw options are the caller's", "what a caller hands in is not written to", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				raw := &metav1.ListOptions{LabelSelector: "a=b", Limit: 7}
				o.note("error", c.List(t.Context(), &corev1.ConfigMapList{}, &client.ListOptions{Namespace: ns, Raw: raw}))
				o.note("afterwards", fmt.Sprintf("%q %d", raw.LabelSelector, raw.Limit))
			}),
		},
	)
}

func subresourceCases() []testCase {
	return []testCase{
		live("update the status (unstructured)", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			w := widget(ns, "w")
			must(t, c.Create(t.Context(), w))
			must(t, unstructured.SetNestedField(w.Object, true, "status", "ready"))
			must(t, unstructured.SetNestedField(w.Object, int64(5), "spec", "size"))
			o.note("error", c.Status().Update(t.Context(), w))
			o.note("object", fmt.Sprint(w.Object["spec"], w.Object["status"]))
		}),
		live("update the status (typed)", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			p := pod(ns, "a")
			must(t, c.Create(t.Context(), p))
			p.Status.Reason, p.Labels = "Mine", map[string]string{"l": "1"}
			o.note("error", c.Status().Update(t.Context(), p))
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(p), p))
			o.note("reason", p.Status.Reason)
			o.note("labels", p.Labels)
		}),
		live("update an object with a changed status", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			w := widget(ns, "w")
			must(t, c.Create(t.Context(), w))
			must(t, unstructured.SetNestedField(w.Object, true, "status", "ready"))
			o.note("error", c.Update(t.Context(), w))
			o.note("status", w.Object["status"] != nil)
		}),
		live("patch the status", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			w := widget(ns, "w")
			must(t, c.Create(t.Context(), w))
			before := w.DeepCopy()
			must(t, unstructured.SetNestedField(w.Object, true, "status", "ready"))
			o.note("error", c.Status().Patch(t.Context(), w, client.MergeFrom(before)))
			o.note("status", w.Object["status"])
		}),
		live("status of an absent object", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			o.note("error", c.Status().Update(t.Context(), pod(ns, "a")))
		}),
		live("status of a kind without one", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			o.note("error", c.Status().Update(t.Context(), configMap(t, ns, "a", nil)))
		}),
		live("apply the status", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			must(t, c.Create(t.Context(), widget(ns, "w")))
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
				"metadata": map[string]any{"namespace": ns, "name": "w"}, "status": map[string]any{"ready": true}}}
			o.note("error", c.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me")))
			o.note("status", u.Object["status"])
		}),
		live("read and write the scale", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			rs := replicaSet(ns, "a")
			must(t, c.Create(t.Context(), rs))
			scale := &autoscalingv1.Scale{}
			o.note("get", c.SubResource("scale").Get(t.Context(), rs, scale))
			o.note("replicas", scale.Spec.Replicas)
			scale.Spec.Replicas = 0
			o.note("update", c.SubResource("scale").Update(t.Context(), rs, client.WithSubResourceBody(scale)))
		}),
		live("evict a pod", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			p := pod(ns, "a")
			must(t, c.Create(t.Context(), p))
			o.note("error", c.SubResource("eviction").Create(t.Context(), p, &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}}))
			o.note("then", c.Get(t.Context(), client.ObjectKeyFromObject(p), p))
		}),
		live("create a token", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}}
			must(t, c.Create(t.Context(), sa))
			tr := &authenticationv1.TokenRequest{}
			o.note("error", c.SubResource("token").Create(t.Context(), sa, tr))
			o.note("token", tr.Status.Token != "")
		}),
		live("options of a sub-resource create, as a struct", "controller-runtime applies the struct to itself, so its options are lost", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			p := pod(ns, "a")
			must(t, c.Create(t.Context(), p))
			opts := &client.SubResourceCreateOptions{CreateOptions: client.CreateOptions{DryRun: []string{metav1.DryRunAll}}}
			o.note("error", c.SubResource("eviction").Create(t.Context(), p, &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}}, opts))
			o.note("the pod", c.Get(t.Context(), client.ObjectKeyFromObject(p), p))
		}),
	}
}

func wrapperCases() []testCase {
	return []testCase{
		live("a client of one namespace", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			configMap(t, ns, "a", nil)
			n := client.NewNamespacedClient(c, ns)
			o.note("get without a namespace", n.Get(t.Context(), types.NamespacedName{Name: "a"}, &corev1.ConfigMap{}))
			o.note("get from another", n.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}))
			cm := newConfigMap("", "b", nil)
			o.note("create", n.Create(t.Context(), cm))
			o.note("in its namespace", cm.Namespace == ns)
			var l corev1.ConfigMapList
			o.note("list", n.List(t.Context(), &l))
			o.note("items", named(l.Items))
			o.note("cluster-scoped", n.Get(t.Context(), types.NamespacedName{Name: ns}, &corev1.Namespace{}))
		}),
		live("a dry-run client", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			cm := configMap(t, ns, "a", nil)
			d := client.NewDryRunClient(c)
			o.note("create", d.Create(t.Context(), newConfigMap(ns, "b", nil)))
			o.note("delete", d.Delete(t.Context(), cm))
			cm.Data["new"] = "1"
			o.note("update", d.Update(t.Context(), cm))
			o.note("delete all", d.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(ns)))
			o.note("left", storedNames(t, ns))
			o.note("data", stored(t, ns, "a").Data)
		}),
		live("a client with a field owner", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			f := client.WithFieldOwner(c, "me")
			o.note("create", f.Create(t.Context(), newConfigMap(ns, "a", nil)))
			o.note("manager", stored(t, ns, "a").ManagedFields[0].Manager)
			o.note("create as another", f.Create(t.Context(), newConfigMap(ns, "b", nil), client.FieldOwner("other")))
			o.note("manager", stored(t, ns, "b").ManagedFields[0].Manager)
		}),
		live("a client with field validation", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			w := widget(ns, "w")
			must(t, unstructured.SetNestedField(w.Object, "x", "spec", "unknown"))
			o.note("error", client.WithFieldValidation(c, metav1.FieldValidationStrict).Create(t.Context(), w))
		}),
		live("an intercepted client", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			var seen sequence
			i := interceptor.NewClient(c, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					seen.add("get " + key.Name)
					return c.Get(ctx, key, obj, opts...)
				},
				SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
					seen.add("update " + name)
					return nil
				},
			})
			configMap(t, ns, "a", nil)
			o.note("get", i.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, &corev1.ConfigMap{}))
			o.note("status", i.Status().Update(t.Context(), newConfigMap(ns, "a", nil)))
			o.note("create", i.Create(t.Context(), newConfigMap(ns, "b", nil)))
			o.note("seen", seen.String())
		}),
		live("a client for dry runs made by an option", "", func(t *testing.T, o *outcome, _ client.WithWatch, ns string) {
			c, err := client.New(server, client.Options{DryRun: new(true)})
			must(t, err)
			o.note("create", c.Create(t.Context(), newConfigMap(ns, "a", nil)))
			o.note("stored", stored(t, ns, "a") != nil)
		}),
		live("a client with a field owner made by an option", "", func(t *testing.T, o *outcome, _ client.WithWatch, ns string) {
			c, err := client.New(server, client.Options{FieldOwner: "me"})
			must(t, err)
			o.note("create", c.Create(t.Context(), newConfigMap(ns, "a", nil)))
			o.note("manager", stored(t, ns, "a").ManagedFields[0].Manager)
		}),
	}
}

func watchCases() []testCase {
	return slices.Concat(
		inForms("watch", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string, f form) {
			w, err := c.Watch(t.Context(), f.list(), client.InNamespace(ns))
			must(t, err)
			defer w.Stop()
			cm := configMap(t, ns, "a", nil)
			cm.Data["new"] = "1"
			must(t, c.Update(t.Context(), cm))
			must(t, c.Delete(t.Context(), cm))
			for range 3 {
				select {
				case e := <-w.ResultChan():
					obj, ok := e.Object.(client.Object)
					o.note(string(e.Type), ok && obj.GetName() == "a")
				case <-time.After(patience):
					t.Fatal("no event")
				}
			}
		}),
		[]testCase{
			live("watch by labels", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(ns), client.MatchingLabels{"x": "1"})
				must(t, err)
				defer w.Stop()
				configMap(t, ns, "a", nil)
				configMap(t, ns, "b", map[string]string{"x": "1"})
				e := <-w.ResultChan()
				o.note(string(e.Type), e.Object.(client.Object).GetName())
			}),
			live("a stopped watch", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(ns))
				must(t, err)
				w.Stop()
				closed := within(patience, func() bool {
					select {
					case _, open := <-w.ResultChan():
						return !open
					default:
						return false
					}
				})
				o.note("channel closed", closed)
			}),
			live("watch custom objects", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
				l := &unstructured.UnstructuredList{}
				l.SetGroupVersionKind(widgetKind.GroupVersion().WithKind("WidgetList"))
				w, err := c.Watch(t.Context(), l, client.InNamespace(ns))
				must(t, err)
				defer w.Stop()
				must(t, c.Create(t.Context(), widget(ns, "w")))
				e := <-w.ResultChan()
				o.note("type", e.Type == watch.Added)
				o.note("kind", e.Object.GetObjectKind().GroupVersionKind().Kind)
			}),
		},
	)
}

// foreign is a Go type that no scheme knows.
type foreign struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (f *foreign) DeepCopyObject() runtime.Object { c := *f; return &c }

func mistakeCases() []testCase {
	return []testCase{
		live("a Go type that the scheme does not know", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			o.note("get", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, &foreign{}))
			_, err := c.GroupVersionKindFor(&foreign{})
			o.note("kind", err)
		}),
		live("a kind that the server does not have", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			u := &unstructured.Unstructured{}
			u.SetAPIVersion("example.com/v1")
			u.SetKind("Gadget")
			o.note("get", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, u))
			l := &unstructured.UnstructuredList{}
			l.SetAPIVersion("nobody.example.com/v1")
			l.SetKind("GadgetList")
			o.note("list", c.List(t.Context(), l))
		}),
		live("an unstructured object without a kind", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			o.note("refused", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, &unstructured.Unstructured{}) != nil)
		}),
		live("a kind installed after the client was made", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			o.note("prepare", c.Get(t.Context(), types.NamespacedName{Name: ns}, &corev1.Namespace{}))
			name := "late" + uniqueName(t)
			must(t, install(crd(name, name, "Namespaced")))
			u := &unstructured.Unstructured{}
			u.SetAPIVersion("example.com/v1")
			u.SetKind(name)
			u.SetNamespace(ns)
			u.SetName("l")
			// The server tells of a new kind a moment after it serves it.
			o.note("create, in the end", within(patience, func() bool { return c.Create(t.Context(), u.DeepCopy()) == nil }))
		}),
		live("a cancelled context", "", func(t *testing.T, o *outcome, c client.WithWatch, ns string) {
			ctx, cancel := context.WithCancel(t.Context())
			must(t, c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(ns)))
			cancel()
			o.note("get", c.Get(ctx, types.NamespacedName{Namespace: ns, Name: "a"}, &corev1.ConfigMap{}))
			o.note("create", c.Create(ctx, newConfigMap(ns, "a", nil)))
		}),
		{"client", "no configuration", "", func(t *testing.T, o *outcome) {
			_, err := client.New(nil, client.Options{})
			o.note("error", err)
		}},
	}
}
