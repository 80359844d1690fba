// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

// defaultGrace is how long a pod has to end if neither it nor the delete says.
const defaultGrace = 30

// remove deletes one object, or begins to.
func (e *engine) remove(w *write, opts *metav1.DeleteOptions) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	old, err := e.rows.get(w.k, w.key)
	if err != nil {
		return err
	}
	if old == nil {
		return w.k.notFound(w.key.Name)
	}
	_, err = e.removeLocked(w, old, opts)
	return err
}

func (e *engine) removeLocked(w *write, old *record, opts *metav1.DeleteOptions) (client.Object, error) {
	if err := checkPreconditions(w, old.obj, opts.Preconditions); err != nil {
		return nil, err
	}
	grace := e.grace(w.k, old.obj, opts)
	deleted := old.obj.GetDeletionTimestamp()
	if len(old.obj.GetFinalizers()) == 0 && grace == 0 && !e.holdsContent(w, old.obj) {
		return e.dropAtOnce(w, old)
	}
	if deleted != nil && (old.obj.GetDeletionGracePeriodSeconds() == nil || *old.obj.GetDeletionGracePeriodSeconds() <= grace) {
		return e.visible(old.obj), nil // it is on its way, and a later delete cannot give it more time
	}
	next := old.obj.DeepCopyObject().(client.Object)
	at := now()
	if deleted != nil {
		// Less time than before: counted from when the first delete came.
		at = metav1.NewTime(deleted.Add(-time.Duration(*old.obj.GetDeletionGracePeriodSeconds()) * time.Second))
	}
	at = metav1.NewTime(at.Add(time.Duration(grace) * time.Second))
	next.SetDeletionTimestamp(&at)
	next.SetDeletionGracePeriodSeconds(e.shownGrace(w.k, grace))
	if e.behaviour.has(Generations) && next.GetGeneration() > 0 {
		next.SetGeneration(next.GetGeneration() + 1)
	}
	w.unmanaged = true
	if w.k.gvk == namespaceKind && e.behaviour.has(Namespaces) {
		return e.terminate(w, old, next)
	}
	return e.commit(w, old, next)
}

// dropAtOnce deletes an object without finalizers. One that was given time before is first told that the time is over, as on
// the server.
func (e *engine) dropAtOnce(w *write, old *record) (client.Object, error) {
	if left := old.obj.GetDeletionGracePeriodSeconds(); left != nil && *left > 0 && !w.dryRun {
		next := old.obj.DeepCopyObject().(client.Object)
		next.SetDeletionGracePeriodSeconds(ptr.To[int64](0))
		w.unmanaged = true
		if _, err := e.commit(w, old, next); err != nil {
			return nil, err
		}
		over, err := e.rows.get(w.k, w.key)
		if err != nil {
			return nil, err
		}
		old = over
	}
	return e.drop(w, old, old.obj)
}

// shownGrace gives what is written into the object. Upstream's fake writes none for an object that only waits for its
// finalizers, and tests compare whole objects.
func (e *engine) shownGrace(k *kind, grace int64) *int64 {
	if !e.behaviour.has(Identity) && !k.has(graceful) {
		return nil
	}
	return &grace
}

func checkPreconditions(w *write, obj client.Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != obj.GetUID() {
		return w.k.preconditionConflict(w.key.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *p.UID, obj.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion() {
		return w.k.preconditionConflict(w.key.Name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). "+
			"The object might have been modified", *p.ResourceVersion, obj.GetResourceVersion()))
	}
	return nil
}

// grace gives how many seconds the object has to end.
func (e *engine) grace(k *kind, obj client.Object, opts *metav1.DeleteOptions) int64 {
	if !e.behaviour.has(GracefulPods) || !k.has(graceful) {
		return 0
	}
	node, phase, own := podFacts(obj)
	if node == "" || phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed) {
		return 0
	}
	return max(0, ptr.Deref(opts.GracePeriodSeconds, ptr.Deref(own, defaultGrace)))
}

// podFacts reads from a pod what its deletion depends on.
func podFacts(obj client.Object) (node, phase string, grace *int64) {
	switch pod := obj.(type) {
	case *corev1.Pod:
		return pod.Spec.NodeName, string(pod.Status.Phase), pod.Spec.TerminationGracePeriodSeconds
	case *unstructured.Unstructured:
		node, _, _ = unstructured.NestedString(pod.Object, "spec", "nodeName")
		phase, _, _ = unstructured.NestedString(pod.Object, statusField, "phase")
		if g, ok, _ := unstructured.NestedInt64(pod.Object, "spec", "terminationGracePeriodSeconds"); ok {
			grace = &g
		}
	}
	return node, phase, grace
}

// lingers reports whether an object that is being deleted stays although it has no finalizers.
func lingers(k *kind, obj client.Object) bool {
	if !k.has(graceful) {
		return false
	}
	node, phase, _ := podFacts(obj)
	if node == "" || phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed) {
		return false
	}
	grace := obj.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace > 0
}

// removeAll deletes the objects that s selects, one by one.
func (e *engine) removeAll(w *write, s *selection, opts *metav1.DeleteOptions) error {
	objs, err := e.selected(w.k, s)
	if err != nil {
		return err
	}
	if w.k.gvk == namespaceKind {
		return w.k.noCollection("the server does not delete collections of this kind: list the objects and delete each")
	}
	if w.k.namespaced() && s.namespace == "" {
		const why = "the server deletes within one namespace only: use InNamespace"
		if e.behaviour.has(Namespaces) {
			return w.k.noCollection(why)
		}
		for _, obj := range objs {
			if obj.GetNamespace() != "" {
				return w.k.noCollection(why)
			}
		}
	}
	for _, obj := range objs {
		one := *w
		one.key = types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
		if err := client.IgnoreNotFound(e.remove(&one, opts)); err != nil {
			return err
		}
	}
	return nil
}
