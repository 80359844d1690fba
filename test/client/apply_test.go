// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/test/envtest"
)

func TestServerSideApply(t *testing.T) {
	c := newClient(t, client.Options{FieldOwner: "one"})
	ns, ctx := namespace(t, c), t.Context()
	config := corev1ac.ConfigMap("x", ns).WithData(map[string]string{"a": "1"})
	if err := c.Apply(ctx, config); err != nil {
		t.Fatal(err)
	}
	if config.UID == nil || config.ResourceVersion == nil {
		t.Errorf("the answer did not get into the configuration: %v", config)
	}
	two := func() *corev1ac.ConfigMapApplyConfiguration {
		return corev1ac.ConfigMap("x", ns).WithData(map[string]string{"a": "2"})
	}
	err := c.Apply(ctx, two(), client.FieldOwner("two"))
	if !apierrors.IsConflict(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) || !strings.Contains(err.Error(), ".data.a") {
		t.Errorf("got %v", err)
	}
	if err := c.Apply(ctx, two(), client.FieldOwner("two"), client.ForceOwnership, client.DryRunAll); err != nil {
		t.Error(err)
	}
	forced := two()
	if err := c.Apply(ctx, forced, client.FieldOwner("two"), client.ForceOwnership); err != nil || forced.Data["a"] != "2" {
		t.Errorf("forced: %v, %v", forced.Data, err)
	}
	stored := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "x"}, stored); err != nil || stored.Data["a"] != "2" {
		t.Errorf("stored %v, %v", stored.Data, err)
	}
	if err := client.WithFieldOwner(newClient(t, client.Options{}), "three").Apply(ctx, corev1ac.ConfigMap("y", ns)); err != nil {
		t.Error(err)
	}
	if err := newClient(t, client.Options{}).Apply(ctx, corev1ac.ConfigMap("z", ns)); err == nil || !strings.Contains(err.Error(), "FieldOwner") {
		t.Errorf("without an owner: %v", err)
	}
	unknown := widget(ns, "u")
	unknown.Object["spec"].(map[string]any)["unknown"] = "field"
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(unknown)); !apierrors.IsInvalid(err) && err == nil {
		t.Errorf("an apply is always validated strictly: %v", err)
	}
	w := widget(ns, "w")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(w)); err != nil || w.GetUID() == "" {
		t.Errorf("%v, %v", w, err)
	}
	status := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Ready"}}}
	status.SetGroupVersionKind(widgetKind)
	status.SetNamespace(ns)
	status.SetName("w")
	if err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	if phase, _, _ := unstructured.NestedString(status.Object, "status", "phase"); phase != "Ready" || status.GetUID() == "" {
		t.Errorf("status %v", status)
	}
	if err := c.Create(ctx, deployment(ns, "d")); err != nil {
		t.Fatal(err)
	}
	deployed := appsac.Deployment("d", ns).WithStatus(appsac.DeploymentStatus().WithObservedGeneration(1))
	if err := c.Status().Apply(ctx, deployed); err != nil || *deployed.Status.ObservedGeneration != 1 {
		t.Errorf("%v, %v", deployed.Status, err)
	}
	//nolint:staticcheck // the older way goes on working
	old := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "old"}}
	if err := c.Patch(ctx, old, client.Apply, client.FieldOwner("one"), client.ForceOwnership); err != nil || old.UID == "" {
		t.Errorf("%v, %v", old, err)
	}
}

func TestStrategicMerge(t *testing.T) {
	c := newClient(t, client.Options{})
	ns, ctx := namespace(t, c), t.Context()
	d := deployment(ns, "d")
	if err := c.Create(ctx, d); err != nil {
		t.Fatal(err)
	}
	before := d.DeepCopy()
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "second", Image: "i"})
	// Someone else adds a container meanwhile: a strategic merge keeps both, as lists merge by their key.
	other := before.DeepCopy()
	other.Spec.Template.Spec.Containers = append(other.Spec.Template.Spec.Containers, corev1.Container{Name: "third", Image: "i"})
	if err := c.Update(ctx, other); err != nil {
		t.Fatal(err)
	}
	if err := c.Patch(ctx, d, client.StrategicMergeFrom(before)); err != nil || len(d.Spec.Template.Spec.Containers) != 3 {
		t.Errorf("%v, %v", d.Spec.Template.Spec.Containers, err)
	}
	if err := c.Patch(ctx, d, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		t.Errorf("with a lock: %v", err)
	}
}

func TestFieldValidation(t *testing.T) {
	c := newClient(t, client.Options{})
	ns := namespace(t, c)
	unknown := func(name string) *unstructured.Unstructured {
		u := widget(ns, name)
		u.Object["spec"].(map[string]any)["unknown"] = "field"
		return u
	}
	if err := c.Create(t.Context(), unknown("a"), client.FieldValidation(metav1.FieldValidationStrict)); !apierrors.IsBadRequest(err) {
		t.Errorf("strict: %v", err)
	}
	if err := client.WithFieldValidation(c, metav1.FieldValidationStrict).Create(t.Context(), unknown("b"), client.FieldValidation(metav1.FieldValidationIgnore)); err != nil {
		t.Errorf("the call's own: %v", err)
	}
	if err := newClient(t, client.Options{FieldValidation: metav1.FieldValidationStrict}).Create(t.Context(), unknown("c")); !apierrors.IsBadRequest(err) {
		t.Errorf("by options: %v", err)
	}
}

// A CRD can be used as soon as the server serves it, its removal is noticed, and it can come back.
func TestKindsComeAndGo(t *testing.T) {
	c := newClient(t, client.Options{})
	ns, ctx := namespace(t, c), t.Context()
	gadget := func(name string) *unstructured.Unstructured {
		u := widget(ns, name)
		u.SetGroupVersionKind(widgetKind.GroupVersion().WithKind("Gadget"))
		return u
	}
	if err := c.Create(ctx, gadget("g")); !meta.IsNoMatchError(err) {
		t.Fatalf("before: %v", err)
	}
	install := func() envtest.CRDInstallOptions {
		options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD("gadgets", "Gadget")}}
		if _, err := envtest.InstallCRDs(config, options); err != nil {
			t.Fatal(err)
		}
		return options
	}
	options := install()
	if err := c.Create(ctx, gadget("g")); err != nil {
		t.Fatalf("installed: %v", err)
	}
	if err := envtest.UninstallCRDs(config, options); err != nil {
		t.Fatal(err)
	}
	removed := func() {
		t.Helper()
		for start := time.Now(); ; {
			err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "none"}, gadget("none"))
			if meta.IsNoMatchError(err) {
				return
			}
			if time.Since(start) > patience {
				t.Fatalf("the removal was not noticed: %v", err)
			}
		}
	}
	removed()
	install()
	if err := c.Create(ctx, gadget("again")); err != nil {
		t.Errorf("installed again: %v", err)
	}
	if err := envtest.UninstallCRDs(config, options); err != nil { // for another run of the test
		t.Fatal(err)
	}
	removed()
}
