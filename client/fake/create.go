// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherry-dev/wherry/client"
)

const (
	// suffixLength and maxPrefix are what the server makes generated names of.
	suffixLength = 5
	maxPrefix    = 63 - suffixLength
)

// create stores obj, which is in stored form and is the engine's from here on.
func (e *engine) create(w *write, obj client.Object) (client.Object, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.createLocked(w, obj)
}

func (e *engine) createLocked(w *write, obj client.Object) (client.Object, error) {
	k := w.k
	if obj.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest(errVersionOnMake)
	}
	obj.SetNamespace(k.namespace(obj.GetNamespace()))
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	if e.behaviour.has(Identity) {
		obj.SetUID(uuid.NewUUID())
		obj.SetCreationTimestamp(now())
	}
	if e.behaviour.has(Generations) {
		if k.has(hasGeneration) {
			obj.SetGeneration(1)
		}
	}
	if e.behaviour.has(StatusReset) && k.has(hasStatus) {
		copyStatus(obj, nil)
		begin(obj)
	}
	if err := e.admit(k, obj); err != nil {
		return nil, err
	}
	if err := e.name(k, obj); err != nil {
		return nil, err
	}
	if err := e.validate(k, obj); err != nil {
		return nil, err
	}
	w.key = types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	old, err := e.rows.get(k, w.key)
	if err != nil {
		return nil, err
	}
	if old != nil {
		return nil, apierrors.NewAlreadyExists(k.resource(), w.key.Name)
	}
	return e.commit(w, nil, obj)
}

// begin sets the status that the server gives to new objects of some kinds.
func begin(obj client.Object) {
	switch obj := obj.(type) {
	case *corev1.Pod:
		obj.Status.Phase = corev1.PodPending
	case *corev1.Namespace:
		obj.Status.Phase = corev1.NamespaceActive
	case *corev1.PersistentVolumeClaim:
		obj.Status.Phase = corev1.ClaimPending
	case *corev1.PersistentVolume:
		obj.Status.Phase = corev1.VolumePending
	}
}

// name makes up a name that is not taken, if the object has a generateName instead of one.
func (e *engine) name(k *kind, obj client.Object) error {
	if obj.GetName() != "" {
		return nil
	}
	prefix := obj.GetGenerateName()
	if prefix == "" {
		why := "name is required"
		if e.behaviour.has(Validation) {
			why = "name or generateName is required"
		}
		return k.invalid("", field.Required(field.NewPath("metadata", "name"), why))
	}
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix]
	}
	for {
		obj.SetName(prefix + rand.String(suffixLength))
		taken, err := e.rows.get(k, client.ObjectKeyFromObject(obj))
		if err != nil || taken == nil {
			return err
		}
	}
}

// preload stores a fixture.
func (e *engine) preload(k *kind, obj client.Object) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	obj.SetNamespace(k.namespace(obj.GetNamespace()))
	if obj.GetName() == "" {
		return k.invalid("", field.Required(field.NewPath("metadata", "name"), "name is required"))
	}
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 && !k.has(graceful) {
		return apierrors.NewBadRequest("refusing to create obj " + obj.GetName() + " with metadata.deletionTimestamp but no finalizers")
	}
	if e.behaviour.has(Identity) {
		if obj.GetUID() == "" {
			obj.SetUID(uuid.NewUUID())
		}
		if obj.GetCreationTimestamp() == (metav1.Time{}) {
			obj.SetCreationTimestamp(now())
		}
	}
	if e.behaviour.has(Generations) && k.has(hasGeneration) && obj.GetGeneration() == 0 {
		obj.SetGeneration(1)
	}
	key := client.ObjectKeyFromObject(obj)
	old, err := e.rows.get(k, key)
	if err != nil {
		return err
	}
	if old != nil {
		return apierrors.NewAlreadyExists(k.resource(), key.Name)
	}
	obj.SetResourceVersion(e.versions.preloaded(obj.GetResourceVersion()))
	return e.rows.put(k, key, &record{obj: obj}, nil)
}
