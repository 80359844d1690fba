// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

// owners writes managedFields as manager:operation:subresource.
func owners(obj client.Object) string {
	var all []string
	for _, f := range obj.GetManagedFields() {
		all = append(all, strings.TrimRight(f.Manager+":"+string(f.Operation)+":"+f.Subresource, ":"))
	}
	return strings.Join(all, " ")
}

func TestApply(t *testing.T) {
	ctx := t.Context()
	c := NewClientBuilder().WithReturnManagedFields().Build()
	ac := corev1ac.ConfigMap("c", "a").WithData(map[string]string{"k": "v"})
	must(t, c.Apply(ctx, ac, client.FieldOwner("me")))
	if ac.ResourceVersion == nil || *ac.ResourceVersion != "1" || *ac.Kind != "ConfigMap" {
		t.Errorf("the answer is not in the configuration: %s", text(ac))
	}
	err := c.Apply(ctx, corev1ac.ConfigMap("c", "a").WithData(map[string]string{"k": "w"}), client.FieldOwner("you"))
	if !apierrors.IsConflict(err) || err.Error() != `Apply failed with 1 conflict: conflict with "me": .data.k` {
		t.Errorf("got %v", err)
	}
	must(t, c.Apply(ctx, corev1ac.ConfigMap("c", "a").WithData(map[string]string{"k": "w", "l": "w"}), client.FieldOwner("you"), client.ForceOwnership))
	got := get[corev1.ConfigMap](t, c, client.ObjectKey{Namespace: "a", Name: "c"})
	if text(got.Data) != `{"k":"w","l":"w"}` || owners(got) != "you:Apply" {
		t.Errorf("got %s", text(got))
	}
	// What is not applied any more goes.
	must(t, c.Apply(ctx, corev1ac.ConfigMap("c", "a").WithData(map[string]string{"l": "w"}), client.FieldOwner("you")))
	got = get[corev1.ConfigMap](t, c, client.ObjectKey{Namespace: "a", Name: "c"})
	if text(got.Data) != `{"l":"w"}` {
		t.Errorf("got %s", text(got.Data))
	}
}

// The owners of fields are worked out only when somebody asks, and come out as if they had always been.
func TestApplyAfterUpdatesFindsTheirOwners(t *testing.T) {
	for name, n := range map[string]int{"few writes": 3, "more than are kept": 3 * maxPending} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			c := NewClientBuilder().Build()
			o := cm("a", "c")
			must(t, c.Create(ctx, o, client.FieldOwner("maker")))
			for range n {
				o.Data["a"] += "x"
				must(t, c.Update(ctx, o, client.FieldOwner("updater")))
				if o.ManagedFields != nil {
					t.Fatal("managedFields are shown")
				}
			}
			err := c.Apply(ctx, corev1ac.ConfigMap("c", "a").WithData(map[string]string{"a": "1"}), client.FieldOwner("me"))
			if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "updater" using v1: .data.a`) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestManagedFieldsOfEachWrite(t *testing.T) {
	ctx := t.Context()
	c := NewClientBuilder().WithReturnManagedFields().Build()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}
	must(t, c.Create(ctx, p, client.FieldOwner("maker")))
	p.Labels = map[string]string{"x": "y"}
	must(t, c.Update(ctx, p, client.FieldOwner("labeller")))
	p.Status.Phase = "Running"
	must(t, c.Status().Update(ctx, p, client.FieldOwner("kubelet")))
	must(t, c.Patch(ctx, p, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))))
	if got := owners(p); got != "kubelet:Update:status labeller:Update maker:Update unknown:Update" && len(p.ManagedFields) != 4 {
		t.Errorf("got %s", got)
	}
	for _, f := range p.ManagedFields {
		if f.Manager == "kubelet" && (f.Subresource != "status" || string(f.FieldsV1.Raw) != `{"f:status":{"f:phase":{}}}`) {
			t.Errorf("got %s", text(f))
		}
	}
}

func TestApplyOfCustomKind(t *testing.T) {
	ctx := t.Context()
	c := NewClientBuilder().WithStatusSubresource(widget("", "")).Build()
	u := widget("a", "w")
	unstructured.RemoveNestedField(u.Object, "status")
	must(t, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("me")))
	if u.GetResourceVersion() != "1" {
		t.Errorf("the answer is not in the configuration: %s", text(u))
	}
	status := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "a", "name": "w"}, "status": map[string]any{"phase": "Ready"}}}
	must(t, c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("me")))
	must(t, c.Get(ctx, client.ObjectKey{Namespace: "a", Name: "w"}, u))
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	size, _, _ := unstructured.NestedInt64(u.Object, "spec", "size")
	if phase != "Ready" || size != 1 {
		t.Errorf("got %s", text(u))
	}
	err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(widget("a", "none")), client.FieldOwner("me"))
	if !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

func TestApplyPatch(t *testing.T) {
	c := NewFakeClient()
	o := cm("a", "c")
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	must(t, c.Patch(t.Context(), o, client.Apply, client.FieldOwner("me"), client.ForceOwnership)) //nolint:staticcheck // it must go on working
	if o.ResourceVersion != "1" || o.Data["a"] != "b" {
		t.Errorf("got %s", text(o))
	}
	err := c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{}`)), &client.PatchOptions{Force: ptr.To(true)})
	if !apierrors.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
}
