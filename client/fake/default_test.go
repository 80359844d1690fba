// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

// The tests of this file hold what tests written for controller-runtime's fake client see of ours without asking for
// anything.

func cm(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"a": "b"}}
}

func widget(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec":     map[string]any{"size": int64(1)},
		"status":   map[string]any{"phase": "New"},
	}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[T any, P interface {
	*T
	client.Object
}](t *testing.T, c client.Client, key client.ObjectKey) P {
	t.Helper()
	obj := P(new(T))
	must(t, c.Get(t.Context(), key, obj))
	return obj
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestVersionsOfCreatedAndPreloaded(t *testing.T) {
	c := NewClientBuilder().WithObjects(cm("a", "pre")).Build()
	made := cm("a", "made")
	must(t, c.Create(t.Context(), made))
	if made.ResourceVersion != "1" {
		t.Errorf("created with version %q, want 1", made.ResourceVersion)
	}
	pre := get[corev1.ConfigMap](t, c, client.ObjectKey{Namespace: "a", Name: "pre"})
	if pre.ResourceVersion != "999" {
		t.Errorf("preloaded with version %q, want 999", pre.ResourceVersion)
	}
	must(t, c.Update(t.Context(), pre))
	if pre.ResourceVersion != "1000" {
		t.Errorf("after an update version is %q, want 1000: without NoOpWrites every write counts", pre.ResourceVersion)
	}
}

func TestGlobalVersions(t *testing.T) {
	c := NewClientBuilder().WithGlobalResourceVersionCounter().WithObjects(cm("a", "1"), cm("a", "2")).Build()
	o := cm("a", "3")
	must(t, c.Create(t.Context(), o))
	if o.ResourceVersion != "3" {
		t.Errorf("version %q, want 3", o.ResourceVersion)
	}
}

// What a create leaves as the caller set it.
func TestCreateAddsNothing(t *testing.T) {
	c := NewFakeClient()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}, Status: corev1.PodStatus{Phase: "Running"}}
	must(t, c.Create(t.Context(), p))
	want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", ResourceVersion: "1"}, Status: corev1.PodStatus{Phase: "Running"}}
	if text(p) != text(want) {
		t.Errorf("got %s\nwant %s", text(p), text(want))
	}
}

func TestTypeMeta(t *testing.T) {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
	c := NewClientBuilder().WithObjects(pod).Build()
	key := client.ObjectKeyFromObject(pod)
	got := get[corev1.Pod](t, c, key)
	if got.Kind != "" || got.APIVersion != "" {
		t.Errorf("a typed object has kind %q", got.GroupVersionKind())
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	must(t, c.Get(t.Context(), key, u))
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	must(t, c.Get(t.Context(), key, m))
	for _, gvk := range []any{u.GroupVersionKind(), m.GroupVersionKind()} {
		if gvk != corev1.SchemeGroupVersion.WithKind("Pod") {
			t.Errorf("kind is %v", gvk)
		}
	}
	list := &corev1.PodList{}
	must(t, c.List(t.Context(), list))
	if len(list.Items) != 1 || list.Items[0].Kind != "" || list.ResourceVersion != "" {
		t.Errorf("list is %s", text(list))
	}
	if pod.ResourceVersion != "" {
		t.Error("the builder changed the fixture")
	}
}

func TestErrors(t *testing.T) {
	ctx := t.Context()
	c := NewClientBuilder().WithObjects(cm("a", "here")).Build()
	old := cm("a", "here")
	old.ResourceVersion = "5"
	versioned := cm("a", "new")
	versioned.ResourceVersion = "5"
	dt := cm("a", "here")
	dt.DeletionTimestamp = ptr.To(metav1.Now())
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	for name, test := range map[string]struct {
		err  error
		is   func(error) bool
		says string
	}{
		"get":                     {c.Get(ctx, client.ObjectKey{Namespace: "a", Name: "no"}, cm("", "")), apierrors.IsNotFound, `configmaps "no" not found`},
		"get of an unknown kind":  {c.Get(ctx, client.ObjectKey{Namespace: "a", Name: "no"}, widget("", "")), apierrors.IsNotFound, `widgets.example.com "no" not found`},
		"update":                  {c.Update(ctx, cm("a", "no")), apierrors.IsNotFound, `configmaps "no" not found`},
		"patch":                   {c.Patch(ctx, cm("a", "no"), client.RawPatch(types.MergePatchType, []byte(`{}`))), apierrors.IsNotFound, `configmaps "no" not found`},
		"delete":                  {c.Delete(ctx, cm("a", "no")), apierrors.IsNotFound, `configmaps "no" not found`},
		"create again":            {c.Create(ctx, cm("a", "here")), apierrors.IsAlreadyExists, `configmaps "here" already exists`},
		"create with a version":   {c.Create(ctx, versioned), apierrors.IsBadRequest, "resourceVersion"},
		"create without a name":   {c.Create(ctx, cm("a", "")), apierrors.IsInvalid, "metadata.name: Required value"},
		"update of an old one":    {c.Update(ctx, old), apierrors.IsConflict, `configmaps "here"`},
		"update of deletion":      {c.Update(ctx, dt), apierrors.IsInvalid, "metadata.deletionTimestamp"},
		"status of a ConfigMap":   {c.Status().Update(ctx, cm("a", "here")), apierrors.IsNotFound, `configmaps "here" not found`},
		"status of a custom kind": {c.Status().Update(ctx, widget("a", "w")), apierrors.IsNotFound, "WithStatusSubresource"},
		"canceled":                {c.Get(canceled, client.ObjectKey{Namespace: "a", Name: "here"}, cm("", "")), func(err error) bool { return strings.Contains(err.Error(), "canceled") }, "ConfigMap"},
		"nil":                     {c.Create(ctx, (*corev1.Pod)(nil)), func(error) bool { return true }, "nil"},
		"no owner of an apply":    {c.Patch(ctx, cm("a", "x"), client.Apply), apierrors.IsInvalid, "fieldManager: Required value"},
		"mapper":                  {func() error { _, err := c.IsObjectNamespaced(cm("", "")); return err }(), meta.IsNoMatchError, "ConfigMap"},
		"bad JSON patch":          {c.Patch(ctx, cm("a", "here"), client.RawPatch(types.JSONPatchType, []byte(`{`))), apierrors.IsBadRequest, ""},
		"JSON patch whose test fails": {c.Patch(ctx, cm("a", "here"), client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/data/a","value":"z"}]`))),
			apierrors.IsInvalid, ""},
		"patch of the name":      {c.Patch(ctx, cm("a", "here"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"name":"x"}}`))), apierrors.IsBadRequest, "does not match"},
		"patch of a wrong type":  {c.Patch(ctx, cm("a", "here"), client.RawPatch(types.MergePatchType, []byte(`{"data":5}`))), apierrors.IsInvalid, "data"},
		"strategic, custom kind": {c.Patch(ctx, widget("a", "x"), client.RawPatch(types.StrategicMergePatchType, []byte(`{}`))), apierrors.IsNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if test.err == nil || !test.is(test.err) || !strings.Contains(test.err.Error(), test.says) {
				t.Errorf("got %T %v, want text %q", test.err, test.err, test.says)
			}
		})
	}
}

func TestStatusSplit(t *testing.T) {
	ctx := t.Context()
	for name, b := range map[string]struct {
		builder *ClientBuilder
		split   bool
	}{
		"custom kind, not told": {NewClientBuilder(), false},
		"custom kind, told":     {NewClientBuilder().WithStatusSubresource(widget("", "")), true},
	} {
		t.Run(name, func(t *testing.T) {
			c := b.builder.Build()
			w := widget("a", "w")
			must(t, c.Create(ctx, w))
			must(t, unstructured.SetNestedField(w.Object, "Ready", "status", "phase"))
			must(t, unstructured.SetNestedField(w.Object, int64(2), "spec", "size"))
			must(t, c.Update(ctx, w))
			phase, _, _ := unstructured.NestedString(w.Object, "status", "phase")
			if split := phase == "New"; split != b.split {
				t.Errorf("status is %q after an update of the object", phase)
			}
			if !b.split {
				return
			}
			must(t, unstructured.SetNestedField(w.Object, "Ready", "status", "phase"))
			must(t, unstructured.SetNestedField(w.Object, int64(3), "spec", "size"))
			w.SetLabels(map[string]string{"x": "y"})
			must(t, c.Status().Update(ctx, w))
			size, _, _ := unstructured.NestedInt64(w.Object, "spec", "size")
			phase, _, _ = unstructured.NestedString(w.Object, "status", "phase")
			if size != 2 || phase != "Ready" || w.GetLabels() != nil {
				t.Errorf("got %s", text(w))
			}
		})
	}
	c := NewFakeClient(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}})
	p := get[corev1.Pod](t, c, client.ObjectKey{Namespace: "a", Name: "p"})
	p.Status.Phase = "Running"
	must(t, c.Update(ctx, p))
	if p.Status.Phase != "" {
		t.Error("an update wrote a pod's status")
	}
	must(t, c.Status().Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"},"metadata":{"labels":{"a":"b"}}}`))))
	if p.Status.Phase != "Running" || p.Labels != nil {
		t.Errorf("got %s", text(p))
	}
}

func TestFinalizers(t *testing.T) {
	ctx := t.Context()
	o := cm("a", "f")
	o.Finalizers = []string{"x/y"}
	c := NewClientBuilder().WithObjects(o).Build()
	key := client.ObjectKeyFromObject(o)
	must(t, c.Delete(ctx, o))
	first := get[corev1.ConfigMap](t, c, key)
	if first.DeletionTimestamp == nil || first.ResourceVersion != "1000" {
		t.Fatalf("got %s", text(first))
	}
	must(t, c.Delete(ctx, o))
	second := get[corev1.ConfigMap](t, c, key)
	if text(first) != text(second) {
		t.Errorf("a second delete changed the object\n%s\n%s", text(first), text(second))
	}
	second.Finalizers = nil
	must(t, c.Update(ctx, second))
	if err := c.Get(ctx, key, second); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
	}
}

func TestBuildRefuses(t *testing.T) {
	gone := cm("a", "g")
	gone.DeletionTimestamp = ptr.To(metav1.Now())
	for name, test := range map[string]struct {
		build func()
		says  string
	}{
		"deleted without finalizers": {func() { NewFakeClient(gone) }, "deletionTimestamp but no finalizers"},
		"the same object twice":      {func() { NewFakeClient(cm("a", "b"), cm("a", "b")) }, "already exists"},
		"no name":                    {func() { NewFakeClient(cm("a", "")) }, "name"},
		"second build":               {func() { b := NewClientBuilder(); b.Build(); b.Build() }, "must not be called multiple times"},
		"unregistered":               {func() { NewFakeClient(&unregistered{}) }, "unregistered"},
		"index twice": {func() {
			f := func(client.Object) []string { return nil }
			NewClientBuilder().WithIndex(cm("", ""), "x", f).WithIndex(cm("", ""), "x", f).Build()
		}, "indexer conflict"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(r.(string), test.says) {
					t.Errorf("panic is %v", r)
				}
			}()
			test.build()
		})
	}
}

type unregistered struct{ corev1.ConfigMap }

// A pod that is going away without finalizers is an everyday sight, so it can be a fixture.
func TestPreloadTerminatingPod(t *testing.T) {
	c := NewFakeClient(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", DeletionTimestamp: ptr.To(metav1.NewTime(time.Unix(0, 0)))}})
	p := get[corev1.Pod](t, c, client.ObjectKey{Namespace: "a", Name: "p"})
	if p.DeletionTimestamp == nil {
		t.Error("the deletionTimestamp is lost")
	}
}

func TestClusterScopedKindsHaveNoNamespace(t *testing.T) {
	ctx := t.Context()
	c := NewFakeClient()
	must(t, c.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "cr", Labels: map[string]string{"t": "x"}}}))
	for _, ns := range []string{"", "a", "b"} {
		get[rbacv1.ClusterRole](t, c, client.ObjectKey{Namespace: ns, Name: "cr"})
		list := &rbacv1.ClusterRoleList{}
		must(t, c.List(ctx, list, client.InNamespace(ns), client.MatchingLabels{"t": "x"}))
		if len(list.Items) != 1 {
			t.Errorf("list in %q has %d items", ns, len(list.Items))
		}
	}
}

func TestDeleteAllOfStaysInItsNamespace(t *testing.T) {
	ctx := t.Context()
	c := NewFakeClient(cm("a", "1"), cm("b", "2"), cm("", "3"))
	if err := c.DeleteAllOf(ctx, cm("", "")); !apierrors.IsMethodNotSupported(err) || !strings.Contains(err.Error(), "InNamespace") {
		t.Errorf("got %v", err)
	}
	must(t, c.DeleteAllOf(ctx, cm("", ""), client.InNamespace("a")))
	list := &corev1.ConfigMapList{}
	must(t, c.List(ctx, list))
	if len(list.Items) != 2 {
		t.Errorf("%d left, want 2", len(list.Items))
	}
	// Fixtures without a namespace are in nobody's way.
	c = NewFakeClient(cm("", "1"), cm("", "2"))
	must(t, c.DeleteAllOf(ctx, cm("", "")))
}

func TestListPages(t *testing.T) {
	c := NewFakeClient(cm("a", "1"), cm("a", "2"), cm("a", "3"), cm("b", "1"), cm("b", "2"))
	var names []string
	list := &corev1.ConfigMapList{}
	for more := true; more; more = list.Continue != "" {
		must(t, c.List(t.Context(), list, client.Limit(2), client.Continue(list.Continue)))
		for _, item := range list.Items {
			names = append(names, item.Namespace+item.Name)
		}
	}
	if text(names) != `["a1","a2","a3","b1","b2"]` {
		t.Errorf("got %v", names)
	}
	if err := c.List(t.Context(), list, client.Continue("?")); !apierrors.IsBadRequest(err) {
		t.Errorf("got %v", err)
	}
}

func TestIndexes(t *testing.T) {
	c := NewClientBuilder().WithObjects(cm("a", "1"), cm("b", "2")).
		WithIndex(&corev1.ConfigMap{}, "data.a", func(o client.Object) []string { return []string{o.(*corev1.ConfigMap).Data["a"]} }).Build()
	list := &corev1.ConfigMapList{}
	must(t, c.List(t.Context(), list, client.MatchingFields{"data.a": "b"}, client.InNamespace("b")))
	if len(list.Items) != 1 || list.Items[0].Name != "2" {
		t.Errorf("got %s", text(list.Items))
	}
	err := c.List(t.Context(), list, client.MatchingFields{"data.x": "b"})
	if err == nil || !strings.Contains(err.Error(), "no index with name data.x has been registered") {
		t.Errorf("got %v", err)
	}
	must(t, AddIndex(c, &corev1.ConfigMap{}, "data.x", func(client.Object) []string { return []string{"b"} }))
	must(t, c.List(t.Context(), list, client.MatchingFields{"data.x": "b"}))
	if len(list.Items) != 2 {
		t.Errorf("got %s", text(list.Items))
	}
	if err := AddIndex(client.NewDryRunClient(c), &corev1.ConfigMap{}, "y", nil); err == nil {
		t.Error("a client of another package was taken")
	}
}

func TestScale(t *testing.T) {
	ctx := t.Context()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "d"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
	c := NewFakeClient(d)
	s := &autoscalingv1.Scale{}
	must(t, c.SubResource("scale").Get(ctx, d, s))
	if s.Spec.Replicas != 1 || s.Status.Selector != "a=b" || s.Name != "d" {
		t.Errorf("got %s", text(s))
	}
	s.Spec.Replicas = 4
	must(t, c.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(s)))
	got := get[appsv1.Deployment](t, c, client.ObjectKeyFromObject(d))
	if *got.Spec.Replicas != 4 || s.ResourceVersion != got.ResourceVersion {
		t.Errorf("got %s, scale %s", text(got), text(s))
	}
}
