// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

func widget(ns, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1), "big": int64(9007199254740993)}}}
	u.SetGroupVersionKind(widgetKind)
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

func TestScale(t *testing.T) {
	c := newClient(t, client.Options{})
	ns, ctx := namespace(t, c), t.Context()
	d, w := deployment(ns, "d"), widget(ns, "w")
	for _, obj := range []client.Object{d, w} {
		if err := c.Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
		scale := &autoscalingv1.Scale{}
		if err := c.SubResource("scale").Get(ctx, obj, scale); err != nil || scale.Spec.Replicas != 1 {
			t.Fatalf("%T: %v, %v", obj, scale, err)
		}
		scale.Spec.Replicas = 3
		if err := c.SubResource("scale").Update(ctx, obj, client.WithSubResourceBody(scale)); err != nil || scale.Spec.Replicas != 3 || scale.ResourceVersion == "" {
			t.Errorf("%T: %v, %v", obj, scale, err)
		}
		before := scale.DeepCopy()
		scale.Spec.Replicas = 4
		if err := c.SubResource("scale").Patch(ctx, obj, client.MergeFrom(before), client.WithSubResourceBody(scale)); err != nil || scale.Spec.Replicas != 4 {
			t.Errorf("%T: %v, %v", obj, scale, err)
		}
		// The sub-resource in another form than its object.
		open := &unstructured.Unstructured{}
		open.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
		if err := c.SubResource("scale").Get(ctx, obj, open); err != nil {
			t.Errorf("%T: %v", obj, err)
		} else if n, _, _ := unstructured.NestedInt64(open.Object, "spec", "replicas"); n != 4 {
			t.Errorf("%T: %v", obj, open)
		}
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(w), w); err != nil {
		t.Fatal(err)
	}
	if big, _, _ := unstructured.NestedInt64(w.Object, "spec", "big"); big != 9007199254740993 {
		t.Errorf("a number that nobody touched is %d", big)
	}
}

func TestToken(t *testing.T) {
	c := newClient(t, client.Options{})
	ns := namespace(t, c)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s"}}
	if err := c.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}
	if err := c.SubResource("token").Create(t.Context(), account, token); err != nil || token.Status.Token == "" {
		t.Errorf("%v, %v", token, err)
	}
}

func TestEvictionAndBinding(t *testing.T) {
	c := newClient(t, client.Options{})
	ns, ctx := namespace(t, c), t.Context()
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
	}
	p := pod("p")
	if err := c.Create(ctx, p); err != nil {
		t.Fatal(err)
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "p"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
	if err := c.SubResource("binding").Create(ctx, p, binding); err != nil || binding.Target.Name != "n1" {
		t.Errorf("%v, %v", binding, err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil || p.Spec.NodeName != "n1" {
		t.Errorf("%v, %v", p.Spec.NodeName, err)
	}
	eviction := &policyv1.Eviction{}
	if err := c.SubResource("eviction").Create(ctx, p, eviction, client.DryRunAll); err != nil {
		t.Error(err)
	}
	if err := c.SubResource("eviction").Create(ctx, p, eviction); err != nil {
		t.Error(err)
	}
	if err := client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(p), p)); err != nil || p.DeletionTimestamp == nil {
		t.Errorf("%v, %v", p.DeletionTimestamp, err)
	}
	resize := pod("r")
	if err := c.Create(ctx, resize); err != nil {
		t.Fatal(err)
	}
	if err := c.SubResource("ephemeralcontainers").Get(ctx, resize, resize); err != nil {
		t.Error(err)
	}
}

// Case CL-2: Update and Patch drop a changed status and overwrite it in memory, as the server answers.
func TestStatusIsOverwrittenInMemory(t *testing.T) {
	c := newClient(t, client.Options{})
	ns, ctx := namespace(t, c), t.Context()
	phase := func(u *unstructured.Unstructured) string {
		text, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		return text
	}
	set := func(u *unstructured.Unstructured, text string) {
		if err := unstructured.SetNestedField(u.Object, text, "status", "phase"); err != nil {
			t.Fatal(err)
		}
	}
	stored := func(name string) string {
		u := widget(ns, name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			t.Fatal(err)
		}
		return phase(u)
	}
	for name, write := range map[string]func(w, before *unstructured.Unstructured) error{
		"update": func(w, _ *unstructured.Unstructured) error {
			w.SetFinalizers([]string{"example.com/f"})
			return c.Update(ctx, w)
		},
		"patch": func(w, before *unstructured.Unstructured) error {
			w.SetFinalizers([]string{"example.com/f"})
			return c.Patch(ctx, w, client.MergeFrom(before))
		},
		"status-only": func(w, before *unstructured.Unstructured) error { return c.Patch(ctx, w, client.MergeFrom(before)) },
	} {
		w := widget(ns, name)
		if err := c.Create(ctx, w); err != nil {
			t.Fatal(err)
		}
		before := w.DeepCopy()
		set(w, "Ready")
		if err := write(w, before); err != nil {
			t.Fatal(err)
		}
		if phase(w) != "" {
			t.Errorf("%s: phase %q in memory", name, phase(w))
		}
		if same := w.GetResourceVersion() == before.GetResourceVersion(); same != (name == "status-only") {
			t.Errorf("%s: resourceVersion %s after %s", name, w.GetResourceVersion(), before.GetResourceVersion())
		}
		if err := c.Status().Update(ctx, w); err != nil || stored(name) != "" {
			t.Errorf("%s: stored %q, %v", name, stored(name), err)
		}
		set(w, "Ready")
		if err := c.Status().Update(ctx, w); err != nil || stored(name) != "Ready" {
			t.Errorf("%s: stored %q, %v", name, stored(name), err)
		}
		before = w.DeepCopy()
		set(w, "Done")
		if err := c.Status().Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil || stored(name) != "Done" {
			t.Errorf("%s: stored %q, %v", name, stored(name), err)
		}
		m := maker{form: apiutil.Metadata, kind: widgetKind}.object(ns, name)
		if err := c.Status().Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Meta"}}`))); err != nil || stored(name) != "Meta" {
			t.Errorf("%s: stored %q, %v", name, stored(name), err)
		}
	}
}
