// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllerutil

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/client/interceptor"
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(s), corev1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

func set(namespace, name, uid string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}}
}

func pod(refs ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", OwnerReferences: refs}}
}

func TestSetControllerReference(t *testing.T) {
	s := newScheme(t)
	yes, no := true, false
	owner := set("a", "web", "u1")
	p := pod()
	if err := SetControllerReference(owner, p, s); err != nil {
		t.Fatal(err)
	}
	want := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u1", Controller: &yes, BlockOwnerDeletion: &yes}
	if got := p.OwnerReferences; len(got) != 1 || !equalRef(got[0], want) {
		t.Errorf("the references are %v, want %v", got, want)
	}
	if err := SetControllerReference(owner, p, s, WithBlockOwnerDeletion(false)); err != nil || len(p.OwnerReferences) != 1 || *p.OwnerReferences[0].BlockOwnerDeletion {
		t.Errorf("setting it again, without blocking: %v, %v", err, p.OwnerReferences)
	}
	// The same owner in an old version and an old life is replaced.
	old := pod(metav1.OwnerReference{APIVersion: "apps/v1beta1", Kind: "ReplicaSet", Name: "web", UID: "u0", Controller: &yes})
	if err := SetControllerReference(owner, old, s); err != nil || len(old.OwnerReferences) != 1 || old.OwnerReferences[0].UID != "u1" {
		t.Errorf("over an old version: %v, %v", err, old.OwnerReferences)
	}
	// An owner that was no controller becomes one.
	plain := pod(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u1", Controller: &no})
	if err := SetControllerReference(owner, plain, s); err != nil || len(plain.OwnerReferences) != 1 || !HasControllerReference(plain) {
		t.Errorf("over a plain owner: %v, %v", err, plain.OwnerReferences)
	}
	err := SetControllerReference(set("a", "other", "u2"), p, s)
	var owned *AlreadyOwnedError
	if !errors.As(err, &owned) || owned.Owner.Name != "web" || owned.Object != metav1.Object(p) || !strings.Contains(err.Error(), "web") {
		t.Errorf("a second controller: %v", err)
	}
	if len(p.OwnerReferences) != 1 {
		t.Errorf("the refused owner is there: %v", p.OwnerReferences)
	}
}

func equalRef(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		*a.Controller == *b.Controller && *a.BlockOwnerDeletion == *b.BlockOwnerDeletion
}

// TestWhoMayOwn wants owners of another scope or kind of object to be refused.
func TestWhoMayOwn(t *testing.T) {
	s := newScheme(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for name, c := range map[string]struct {
		owner, object metav1.Object
		ok            bool
	}{
		"same namespace":          {set("a", "web", "u"), pod(), true},
		"cluster owns namespaced": {node, pod(), true},
		"cluster owns cluster":    {node, &corev1.Node{}, true},
		"other namespace":         {set("b", "web", "u"), pod(), false},
		"namespaced owns cluster": {set("a", "web", "u"), &corev1.Node{}, false},
		"unknown kind":            {&unknown{}, pod(), false},
		"no object":               {&metav1.ObjectMeta{Name: "m"}, pod(), false},
	} {
		if err := SetControllerReference(c.owner, c.object, s); (err == nil) != c.ok {
			t.Errorf("%s: controller: %v", name, err)
		}
		if err := SetOwnerReference(c.owner, c.object, s); (err == nil) != c.ok {
			t.Errorf("%s: owner: %v", name, err)
		}
	}
}

// TestUnregisteredOwner: runtime.IsNotRegisteredError looks at an error itself, not at what it wraps.
func TestUnregisteredOwner(t *testing.T) {
	s := newScheme(t)
	_, has := HasOwnerReference(nil, &unknown{}, s)
	for name, err := range map[string]error{
		"SetControllerReference":    SetControllerReference(&unknown{}, pod(), s),
		"SetOwnerReference":         SetOwnerReference(&unknown{}, pod(), s),
		"RemoveOwnerReference":      RemoveOwnerReference(&unknown{}, pod(), s),
		"RemoveControllerReference": RemoveControllerReference(&unknown{}, pod(), s),
		"HasOwnerReference":         has,
	} {
		if !runtime.IsNotRegisteredError(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type unknown struct{ corev1.Pod }

func (u *unknown) DeepCopyObject() runtime.Object { c := *u; return &c }

func TestOwnerReference(t *testing.T) {
	s := newScheme(t)
	p := pod()
	shared := append(make([]metav1.OwnerReference, 0, 4), p.OwnerReferences...)
	p.OwnerReferences = shared
	one, two := set("a", "one", "u1"), set("a", "two", "u2")
	for _, o := range []*appsv1.ReplicaSet{one, two, one} {
		if err := SetOwnerReference(o, p, s); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.OwnerReferences); n != 2 || p.OwnerReferences[0].Controller != nil {
		t.Errorf("the references are %v", p.OwnerReferences)
	}
	if has, err := HasOwnerReference(p.OwnerReferences, one, s); err != nil || !has {
		t.Errorf("it has no reference to one: %v", err)
	}
	if has, err := HasOwnerReference(p.OwnerReferences, set("a", "three", ""), s); err != nil || has {
		t.Errorf("it has a reference to three: %v", err)
	}
	if _, err := HasOwnerReference(p.OwnerReferences, &unknown{}, s); err == nil {
		t.Error("an unknown kind is no error")
	}
	before := slices.Clone(p.OwnerReferences)
	kept := p.OwnerReferences
	if err := RemoveOwnerReference(one, p, s); err != nil || len(p.OwnerReferences) != 1 || p.OwnerReferences[0].Name != "two" {
		t.Errorf("after the removal: %v, %v", err, p.OwnerReferences)
	}
	if !slices.Equal(kept, before) {
		t.Error("the removal changed a slice that may be shared")
	}
	if err := RemoveOwnerReference(one, p, s); err == nil {
		t.Error("a reference that is not there is removed")
	}
	if err := RemoveControllerReference(two, p, s); err == nil {
		t.Error("an owner that is no controller is removed as one")
	}
	if err := errors.Join(SetControllerReference(two, p, s), RemoveControllerReference(two, p, s)); err != nil || len(p.OwnerReferences) != 0 {
		t.Errorf("after the controller's removal: %v, %v", err, p.OwnerReferences)
	}
}

func TestFinalizersInMemory(t *testing.T) {
	p := pod()
	if !AddFinalizer(p, "f") || AddFinalizer(p, "f") || !AddFinalizer(p, "g") || !ContainsFinalizer(p, "f") {
		t.Errorf("after adding: %v", p.Finalizers)
	}
	p.Finalizers = append(p.Finalizers, "f")
	if !RemoveFinalizer(p, "f") || RemoveFinalizer(p, "f") || ContainsFinalizer(p, "f") || !ContainsFinalizer(p, "g") {
		t.Errorf("after removing: %v", p.Finalizers)
	}
}

// newClient makes a fake client that holds objects and notes the verbs.
func newClient(t testing.TB, verbs *[]string, objs ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objs...).WithStatusSubresource(&appsv1.ReplicaSet{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				*verbs = append(*verbs, "create")
				return c.Create(ctx, obj, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				*verbs = append(*verbs, "update")
				return c.Update(ctx, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				*verbs = append(*verbs, "patch")
				return c.Patch(ctx, obj, patch, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				*verbs = append(*verbs, "patch "+sub)
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
}

// TestUpsert runs both functions over every case and looks at what was
// written and what is stored in the end.
func TestUpsert(t *testing.T) {
	three := int32(3)
	there := set("a", "web", "")
	there.Status.Replicas = 1
	spec := func(r *appsv1.ReplicaSet) { r.Spec.Replicas = &three }
	status := func(r *appsv1.ReplicaSet) { r.Status.Replicas = 2 }
	for name, c := range map[string]struct {
		there  bool
		mutate []func(*appsv1.ReplicaSet)
		update OperationResult
		patch  OperationResult
		verbs  string // of the patch
	}{
		"created":     {false, []func(*appsv1.ReplicaSet){spec}, OperationResultCreated, OperationResultCreated, "create"},
		"unchanged":   {true, nil, OperationResultNone, OperationResultNone, ""},
		"spec":        {true, []func(*appsv1.ReplicaSet){spec}, OperationResultUpdated, OperationResultUpdated, "patch"},
		"status":      {true, []func(*appsv1.ReplicaSet){status}, OperationResultUpdated, OperationResultUpdatedStatusOnly, "patch status"},
		"spec+status": {true, []func(*appsv1.ReplicaSet){spec, status}, OperationResultUpdated, OperationResultUpdatedStatus, "patch,patch status"},
	} {
		for form, upsert := range map[string]func(context.Context, client.Client, client.Object, MutateFn) (OperationResult, error){"update": CreateOrUpdate, "patch": CreateOrPatch} {
			var verbs []string
			var objs []client.Object
			if c.there {
				objs = append(objs, there.DeepCopy())
			}
			cl := newClient(t, &verbs, objs...)
			obj := set("a", "web", "")
			result, err := upsert(t.Context(), cl, obj, func() error {
				for _, m := range c.mutate {
					m(obj)
				}
				return nil
			})
			want := c.update
			if form == "patch" {
				want = c.patch
			}
			if err != nil || result != want {
				t.Errorf("%s by %s: %s, %v, want %s", name, form, result, err, want)
			}
			if got := strings.Join(verbs, ","); form == "patch" && got != c.verbs {
				t.Errorf("%s: the requests are %q, want %q", name, got, c.verbs)
			}
			stored := &appsv1.ReplicaSet{}
			if err := cl.Get(t.Context(), client.ObjectKeyFromObject(obj), stored); err != nil {
				t.Fatal(err)
			}
			if form == "patch" && (stored.Status.Replicas != obj.Status.Replicas || stored.ResourceVersion != obj.ResourceVersion) {
				t.Errorf("%s: stored %v at %s, the object has %v at %s", name, stored.Status, stored.ResourceVersion, obj.Status, obj.ResourceVersion)
			}
			if strings.Contains(name, "status") && form == "patch" && stored.Status.Replicas != 2 {
				t.Errorf("%s: the stored status is %v", name, stored.Status)
			}
			if strings.Contains(name, "spec") && (stored.Spec.Replicas == nil || *stored.Spec.Replicas != 3) {
				t.Errorf("%s by %s: the stored spec is %v", name, form, stored.Spec)
			}
		}
	}
}

// TestUpsertUnstructured wants objects without a Go type to be patched too.
func TestUpsertUnstructured(t *testing.T) {
	var verbs []string
	cl := newClient(t, &verbs, set("a", "web", ""))
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	obj.SetNamespace("a")
	obj.SetName("web")
	result, err := CreateOrPatch(t.Context(), cl, obj, func() error {
		return errors.Join(
			unstructured.SetNestedField(obj.Object, int64(3), "spec", "replicas"),
			unstructured.SetNestedField(obj.Object, int64(2), "status", "replicas"),
		)
	})
	if err != nil || result != OperationResultUpdatedStatus {
		t.Errorf("%s, %v", result, err)
	}
	stored := &appsv1.ReplicaSet{}
	if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "web"}, stored); err != nil || *stored.Spec.Replicas != 3 || stored.Status.Replicas != 2 {
		t.Errorf("stored: %v, %v", stored, err)
	}
}

// TestUpsertErrors wants errors to be returned, and a MutateFn that renames
// the object to be refused before anything is written.
func TestUpsertErrors(t *testing.T) {
	boom := errors.New("boom")
	for name, upsert := range map[string]func(context.Context, client.Client, client.Object, MutateFn) (OperationResult, error){"update": CreateOrUpdate, "patch": CreateOrPatch} {
		for _, there := range []bool{true, false} {
			var verbs []string
			var objs []client.Object
			if there {
				objs = append(objs, set("a", "web", ""))
			}
			cl := newClient(t, &verbs, objs...)
			obj := set("a", "web", "")
			if result, err := upsert(t.Context(), cl, obj, func() error { return boom }); !errors.Is(err, boom) || result != OperationResultNone {
				t.Errorf("%s: %s, %v, want the MutateFn's error", name, result, err)
			}
			obj = set("a", "web", "")
			if _, err := upsert(t.Context(), cl, obj, func() error { obj.Name = "other"; return nil }); err == nil {
				t.Errorf("%s: a new name is accepted", name)
			}
			if len(verbs) != 0 {
				t.Errorf("%s: after errors it wrote: %v", name, verbs)
			}
		}
	}
}
