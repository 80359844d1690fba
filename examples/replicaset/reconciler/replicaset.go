// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/controllerutil"
)

// burst is the most pods one reconcile creates or deletes. What is left is done
// by the next one, which the first pod's event brings about.
const burst = 500

// ReplicaSet reconciles ReplicaSets: it creates and deletes pods until as many
// run as the spec asks for, and reports what it sees in the status.
type ReplicaSet struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server. Before pods are created or deleted they
	// are counted here once more, because the cache may not have heard of the
	// last reconcile's pods yet.
	Live client.Reader
	// Scheme knows ReplicaSet, so that pods can name it as their owner.
	Scheme *runtime.Scheme
}

// SetupWithManager registers the reconciler: it runs for each ReplicaSet that
// changes and for the owner of each pod that does.
func (r *ReplicaSet) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&appsv1.ReplicaSet{}).
		Owns(&corev1.Pod{}).
		Complete(r)
}

// Reconcile makes one ReplicaSet's pods and status match its spec.
func (r *ReplicaSet) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var rs appsv1.ReplicaSet
	if err := r.Client.Get(ctx, req.NamespacedName, &rs); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // gone: its pods go with it by owner reference
	}
	pods, err := ownedPods(ctx, r.Client, &rs)
	if err != nil {
		return ctrl.Result{}, err
	}
	if rs.DeletionTimestamp == nil && len(active(pods)) != want(&rs) {
		if pods, err = r.scale(ctx, &rs); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, r.updateStatus(ctx, &rs, pods)
}

// want is how many pods the spec asks for: one when it does not say.
func want(rs *appsv1.ReplicaSet) int { return int(ptr.Deref(rs.Spec.Replicas, 1)) }

// scale creates or deletes pods until there are as many as wanted, counted
// live, and returns the pods there are then.
func (r *ReplicaSet) scale(ctx context.Context, rs *appsv1.ReplicaSet) ([]corev1.Pod, error) {
	pods, err := ownedPods(ctx, r.Live, rs)
	if err != nil {
		return nil, err
	}
	running := active(pods)
	for range min(burst, want(rs)-len(running)) {
		pod, err := r.create(ctx, rs)
		if err != nil {
			return nil, err
		}
		pods = append(pods, *pod)
	}
	surplus := leastWorthKeeping(running, min(burst, len(running)-want(rs)))
	for _, pod := range surplus {
		err := r.Client.Delete(ctx, &pod, client.Preconditions{UID: &pod.UID})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete surplus pod: %w", err)
		}
	}
	return without(pods, surplus), nil
}

// create makes one pod from the template, owned by rs.
func (r *ReplicaSet) create(ctx context.Context, rs *appsv1.ReplicaSet) (*corev1.Pod, error) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: rs.Name + "-",
			Namespace:    rs.Namespace,
			Labels:       rs.Spec.Template.Labels,
			Annotations:  rs.Spec.Template.Annotations,
			Finalizers:   rs.Spec.Template.Finalizers,
		},
		Spec: *rs.Spec.Template.Spec.DeepCopy(),
	}
	if err := controllerutil.SetControllerReference(rs, pod, r.Scheme); err != nil {
		return nil, err
	}
	if err := r.Client.Create(ctx, pod); err != nil {
		return nil, fmt.Errorf("create pod: %w", err)
	}
	return pod, nil
}

// updateStatus writes the status if it differs from what is stored.
func (r *ReplicaSet) updateStatus(ctx context.Context, rs *appsv1.ReplicaSet, pods []corev1.Pod) error {
	status := observe(rs, active(pods))
	if equality.Semantic.DeepEqual(rs.Status, status) {
		return nil
	}
	before := rs.DeepCopy()
	rs.Status = status
	// A patch of the status alone: nobody else writes these fields, and a
	// spec that changed meanwhile must not turn the report into a conflict.
	if err := r.Client.Status().Patch(ctx, rs, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}
