// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllerutil

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// AlreadyOwnedError says that an object has another controller already.
type AlreadyOwnedError struct {
	Object metav1.Object
	Owner  metav1.OwnerReference
}

func (e *AlreadyOwnedError) Error() string {
	return fmt.Sprintf("object %s/%s is already owned by its controller %s %q", e.Object.GetNamespace(), e.Object.GetName(), e.Owner.Kind, e.Owner.Name)
}

// OwnerReferenceOption changes an owner reference before it is set.
type OwnerReferenceOption func(*metav1.OwnerReference)

// WithBlockOwnerDeletion says whether foreground deletion of the owner waits
// for the object. SetControllerReference sets it to true by default.
func WithBlockOwnerDeletion(blockOwnerDeletion bool) OwnerReferenceOption {
	return func(ref *metav1.OwnerReference) { ref.BlockOwnerDeletion = &blockOwnerDeletion }
}

// SetControllerReference makes owner the controller of the controlled object,
// in memory only. The object is then deleted with its owner, and its events
// can queue the owner. It fails with an AlreadyOwnedError if the object has
// another controller, and if the owner may not own it: an owner with a
// namespace owns objects of that namespace only.
func SetControllerReference(owner, controlled metav1.Object, scheme *runtime.Scheme, opts ...OwnerReferenceOption) error {
	yes, block := true, true
	ref, err := referenceTo(owner, controlled, scheme)
	if err != nil {
		return err
	}
	ref.Controller, ref.BlockOwnerDeletion = &yes, &block
	for _, opt := range opts {
		opt(&ref)
	}
	if existing := metav1.GetControllerOf(controlled); existing != nil && !sameOwner(*existing, ref) {
		return &AlreadyOwnedError{Object: controlled, Owner: *existing}
	}
	upsert(controlled, ref)
	return nil
}

// SetOwnerReference makes owner an owner of the object, in memory only, and
// updates the reference if there is one already. Unlike a controller an object
// may have many owners.
func SetOwnerReference(owner, object metav1.Object, scheme *runtime.Scheme, opts ...OwnerReferenceOption) error {
	ref, err := referenceTo(owner, object, scheme)
	if err != nil {
		return err
	}
	for _, opt := range opts {
		opt(&ref)
	}
	upsert(object, ref)
	return nil
}

// RemoveOwnerReference takes the reference to owner from the object, in memory
// only. It fails if there is none.
func RemoveOwnerReference(owner, object metav1.Object, scheme *runtime.Scheme) error {
	ref, err := ownerReference(owner, scheme)
	if err != nil {
		return err
	}
	refs := object.GetOwnerReferences()
	i := indexOf(refs, ref)
	if i < 0 {
		return fmt.Errorf("remove owner reference: object %s/%s is not owned by %s %q", object.GetNamespace(), object.GetName(), ref.Kind, ref.Name)
	}
	object.SetOwnerReferences(slices.Delete(slices.Clone(refs), i, i+1))
	return nil
}

// RemoveControllerReference is RemoveOwnerReference, but fails also if owner
// is not the object's controller.
func RemoveControllerReference(owner, object metav1.Object, scheme *runtime.Scheme) error {
	ref, err := ownerReference(owner, scheme)
	if err != nil {
		return err
	}
	if existing := metav1.GetControllerOf(object); existing == nil || !sameOwner(*existing, ref) {
		return fmt.Errorf("remove controller reference: object %s/%s is not controlled by %s %q", object.GetNamespace(), object.GetName(), ref.Kind, ref.Name)
	}
	return RemoveOwnerReference(owner, object, scheme)
}

// HasControllerReference tells whether the object has a controller.
func HasControllerReference(object metav1.Object) bool {
	return metav1.GetControllerOfNoCopy(object) != nil
}

// HasOwnerReference tells whether one of the references is to obj.
func HasOwnerReference(ownerRefs []metav1.OwnerReference, obj client.Object, scheme *runtime.Scheme) (bool, error) {
	ref, err := ownerReference(obj, scheme)
	if err != nil {
		return false, err
	}
	return indexOf(ownerRefs, ref) >= 0, nil
}

// referenceTo makes the reference of object to owner if owner may own it.
func referenceTo(owner, object metav1.Object, scheme *runtime.Scheme) (metav1.OwnerReference, error) {
	ref, err := ownerReference(owner, scheme)
	if err != nil {
		return ref, err
	}
	if ns := owner.GetNamespace(); ns != "" && ns != object.GetNamespace() {
		if object.GetNamespace() == "" {
			return ref, fmt.Errorf("%s %q of namespace %q cannot own the cluster-scoped object %q", ref.Kind, ref.Name, ns, object.GetName())
		}
		return ref, fmt.Errorf("%s %q of namespace %q cannot own object %q of namespace %q", ref.Kind, ref.Name, ns, object.GetName(), object.GetNamespace())
	}
	return ref, nil
}

func ownerReference(owner metav1.Object, scheme *runtime.Scheme) (metav1.OwnerReference, error) {
	obj, ok := owner.(runtime.Object)
	if !ok {
		return metav1.OwnerReference{}, fmt.Errorf("the owner %T is no runtime.Object", owner)
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return metav1.OwnerReference{}, err // as it is, here and in the callers: runtime.IsNotRegisteredError does not unwrap
	}
	return metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(),
		Kind:       gvk.Kind,
		Name:       owner.GetName(),
		UID:        owner.GetUID(),
	}, nil
}

// sameOwner compares group, kind and name. The version changes over an
// owner's life, and the UID of an owner that was made anew is to be replaced.
func sameOwner(a, b metav1.OwnerReference) bool {
	if a.Kind != b.Kind || a.Name != b.Name {
		return false
	}
	ga, errA := schema.ParseGroupVersion(a.APIVersion)
	gb, errB := schema.ParseGroupVersion(b.APIVersion)
	return errA == nil && errB == nil && ga.Group == gb.Group
}

func indexOf(refs []metav1.OwnerReference, ref metav1.OwnerReference) int {
	return slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return sameOwner(r, ref) })
}

// upsert leaves the slice that the object had alone: it may be shared.
func upsert(object metav1.Object, ref metav1.OwnerReference) {
	refs := slices.Clone(object.GetOwnerReferences())
	if i := indexOf(refs, ref); i >= 0 {
		refs[i] = ref
	} else {
		refs = append(refs, ref)
	}
	object.SetOwnerReferences(refs)
}
