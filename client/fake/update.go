// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherry-dev/wherry/client"
)

// update replaces the stored object by obj, which is in stored form and is the engine's from here on.
func (e *engine) update(w *write, obj client.Object) (client.Object, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old, err := e.rows.get(w.k, w.key)
	if err != nil {
		return nil, err
	}
	if old == nil {
		if w.k.has(upserted) && w.subresource == "" {
			obj.SetResourceVersion("")
			return e.createLocked(w, obj)
		}
		return nil, w.k.notFound(w.key.Name)
	}
	return e.replace(w, old, obj)
}

// replace is what Update and every form of Patch end in. The lock is held.
func (e *engine) replace(w *write, old *record, obj client.Object) (client.Object, error) {
	k, was := w.k, old.obj
	if uid := obj.GetUID(); e.behaviour.has(Identity) && uid != "" && uid != was.GetUID() {
		if w.patch {
			return nil, k.invalid(w.key.Name, field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable"))
		}
		return nil, k.uidConflict(w.key.Name, uid, was.GetUID())
	}
	v := obj.GetResourceVersion()
	if v == "" && k.has(versioned) {
		return nil, k.invalidVersion(w.key.Name)
	}
	if v != "" && v != was.GetResourceVersion() {
		return nil, k.conflict(w.key.Name, errModified)
	}
	if err := e.keepMetadata(k, was, obj); err != nil {
		return nil, err
	}
	next := split(w, was, obj)
	next.SetResourceVersion(was.GetResourceVersion())
	if err := e.validateUpdate(k, was, next); err != nil {
		return nil, err
	}
	e.countGeneration(k, was, next)
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 && !lingers(k, next) {
		return e.finish(w, old, next)
	}
	return e.commit(w, old, next)
}

// finish removes an object whose last finalizer the write has taken away.
func (e *engine) finish(w *write, old *record, next client.Object) (client.Object, error) {
	if !e.versions.global {
		next.SetResourceVersion(e.versions.next(old.obj))
	}
	r := &record{obj: next}
	if err := e.manage(w, old, r); err != nil {
		return nil, err
	}
	return e.drop(w, old, r.obj)
}

// split gives what the write may change of what it sent: a write to the object leaves the status alone, a write to the
// status everything else.
func split(w *write, was, obj client.Object) client.Object {
	part := partSubresources[w.k.gvk.GroupKind()][w.subresource]
	if w.subresource == statusField {
		part = statusField
	}
	if part != "" {
		next := was.DeepCopyObject().(client.Object)
		copyPart(next, obj, part)
		next.SetManagedFields(obj.GetManagedFields())
		return next
	}
	if w.k.has(hasStatus) {
		copyStatus(obj, was)
	}
	return obj
}

// keepMetadata sets what a writer may leave out and cannot change.
func (e *engine) keepMetadata(k *kind, was, obj client.Object) error {
	obj.SetNamespace(was.GetNamespace())
	obj.SetName(was.GetName())
	obj.SetSelfLink(was.GetSelfLink())
	if obj.GetUID() == "" {
		obj.SetUID(was.GetUID())
	}
	if created := obj.GetCreationTimestamp(); created.IsZero() || e.behaviour.has(Identity) {
		obj.SetCreationTimestamp(was.GetCreationTimestamp())
	}
	if e.behaviour.has(Generations) {
		obj.SetGeneration(was.GetGeneration())
	}
	if deleted := was.GetDeletionTimestamp(); deleted != nil {
		obj.SetDeletionTimestamp(deleted)
		obj.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	} else if obj.GetDeletionTimestamp() != nil {
		return k.invalid(obj.GetName(), field.Invalid(field.NewPath("metadata", "deletionTimestamp"), obj.GetDeletionTimestamp(), "field is immutable"))
	}
	return nil
}

// countGeneration raises the generation if anything but metadata and status has changed.
func (e *engine) countGeneration(k *kind, was, next client.Object) {
	if !e.behaviour.has(Generations) || !k.has(hasGeneration) {
		return
	}
	if !apiequality.Semantic.DeepEqual(specOnly(was), specOnly(next)) {
		next.SetGeneration(was.GetGeneration() + 1)
	}
}

// specOnly gives a copy without metadata and status.
func specOnly(obj client.Object) any {
	bare := obj.DeepCopyObject().(client.Object)
	if u, ok := bare.(*unstructured.Unstructured); ok {
		delete(u.Object, "metadata")
		delete(u.Object, statusField)
		return u.Object
	}
	clearMetadata(bare)
	copyStatus(bare, nil)
	return bare
}

func clearMetadata(obj client.Object) {
	if a, ok := obj.(metav1.ObjectMetaAccessor); ok {
		if m, ok := a.GetObjectMeta().(*metav1.ObjectMeta); ok {
			*m = metav1.ObjectMeta{}
		}
	}
}

// sameContent reports whether two states of an object are the same but for their versions, the times in managedFields and,
// unless asked, the rest of managedFields.
func sameContent(was, next client.Object, managed bool) bool {
	a, b := was.DeepCopyObject().(client.Object), next.DeepCopyObject().(client.Object)
	for _, o := range []client.Object{a, b} {
		o.SetResourceVersion("")
		fields := o.GetManagedFields()
		if !managed {
			fields = nil
		}
		for i := range fields {
			fields[i].Time = nil
		}
		o.SetManagedFields(fields)
	}
	return apiequality.Semantic.DeepEqual(a, b)
}

// checkURL refuses a patch that changes what the request was addressed to.
func checkURL(w *write, obj client.Object) error {
	if obj.GetName() != w.key.Name {
		return badRequestf("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), w.key.Name)
	}
	if ns := w.k.namespace(obj.GetNamespace()); ns != "" && ns != w.key.Namespace {
		return badRequestf("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}
