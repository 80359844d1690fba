// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// needsNamespace refuses a request that names no namespace, as a live client does before it sends anything.
func (e *engine) needsNamespace(k *kind, key types.NamespacedName) error {
	if e.behaviour.has(Namespaces) && k.namespaced() && key.Namespace == "" {
		return fmt.Errorf("%s %q: an empty namespace may not be set: the kind lives in namespaces", k.gvk.Kind, key.Name)
	}
	return nil
}

// admit refuses what must not be created in the namespace it names.
func (e *engine) admit(k *kind, obj client.Object) error {
	if !e.behaviour.has(Namespaces) || !k.namespaced() {
		return nil
	}
	ns := obj.GetNamespace()
	home := e.of(namespaceKind)
	r, err := e.rows.get(home, types.NamespacedName{Name: ns})
	if err != nil {
		return err
	}
	if r == nil {
		return home.notFound(ns)
	}
	if r.obj.GetDeletionTimestamp() == nil {
		return nil
	}
	refused := apierrors.NewForbidden(k.resource(), obj.GetName(), errors.New("unable to create new content in namespace "+ns+" because it is being terminated"))
	refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: "namespace " + ns + " is being terminated", Field: "metadata.namespace",
	})
	return refused
}

// holdsContent reports whether obj is a namespace with something in it, which has to go first.
func (e *engine) holdsContent(w *write, obj client.Object) bool {
	m, ok := e.rows.(memory)
	return ok && w.k.gvk == namespaceKind && e.behaviour.has(Namespaces) && m.anyIn(obj.GetName())
}

// terminate marks a namespace as going away and does what the namespace controller does: it deletes what is in it. What has
// finalizers stays, and the namespace with it, until the last of it goes.
func (e *engine) terminate(w *write, old *record, next client.Object) (client.Object, error) {
	if ns, ok := next.(*corev1.Namespace); ok {
		ns.Status.Phase = corev1.NamespaceTerminating
	}
	shown, err := e.commit(w, old, next)
	if err != nil || w.dryRun {
		return shown, err
	}
	return shown, e.rows.(memory).eachIn(w.key.Name, func(gvk kindAndKey, r *record) error {
		one := &write{k: e.of(gvk.gvk), key: gvk.key}
		_, err := e.removeLocked(one, r, &metav1.DeleteOptions{})
		return err
	})
}

// leave removes a namespace that is going away once nothing is left in it.
func (e *engine) leave(namespace string) error {
	m, ok := e.rows.(memory)
	if !ok || namespace == "" || !e.behaviour.has(Namespaces) || m.anyIn(namespace) {
		return nil
	}
	w := &write{k: e.of(namespaceKind), key: types.NamespacedName{Name: namespace}}
	home, err := e.rows.get(w.k, w.key)
	if err != nil || home == nil || home.obj.GetDeletionTimestamp() == nil || len(home.obj.GetFinalizers()) > 0 {
		return err
	}
	_, err = e.drop(w, home, home.obj)
	return err
}
