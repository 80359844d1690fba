// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/controllerutil"
	"github.com/wherry-dev/wherry/controller/predicate"
)

// claim settles which running pods are rs's: it adopts orphans that match,
// releases owned pods that do not match any more, and returns those that are
// rs's now. A ReplicaSet that is being deleted neither adopts nor releases, and
// a pod that has finished or is on its way out stays whose it was.
func (r *ReplicaSet) claim(ctx context.Context, rs *appsv1.ReplicaSet, selector labels.Selector, pods []corev1.Pod) ([]corev1.Pod, error) {
	alive := sync.OnceValue(func() error { return r.stillAlive(ctx, rs) })
	mine := make([]corev1.Pod, 0, len(pods))
	var errs []error
	for i := range pods {
		pod := &pods[i]
		if !active(pod) {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(pod)
		switch {
		case owner != nil && owner.UID != rs.UID: // somebody else's
		case owner != nil && matches(selector, pod):
			mine = append(mine, *pod)
		case rs.DeletionTimestamp != nil:
		case owner != nil:
			errs = append(errs, r.release(ctx, rs, pod.DeepCopy()))
		case matches(selector, pod):
			if err := alive(); err != nil {
				errs = append(errs, err)
				continue
			}
			pod = pod.DeepCopy()
			adopted, err := r.adopt(ctx, rs, pod)
			errs = append(errs, err)
			if adopted {
				mine = append(mine, *pod)
			}
		}
	}
	return mine, errors.Join(errs...)
}

// stillAlive asks the API server whether rs is what the cache says: a pod must
// not be given to an owner that is gone, or it is deleted with it.
func (r *ReplicaSet) stillAlive(ctx context.Context, rs *appsv1.ReplicaSet) error {
	var fresh appsv1.ReplicaSet
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(rs), &fresh); err != nil {
		return fmt.Errorf("before adopting pods: %w", err)
	}
	if fresh.UID != rs.UID || fresh.DeletionTimestamp != nil {
		return fmt.Errorf("before adopting pods: ReplicaSet %s/%s with UID %s is gone", rs.Namespace, rs.Name, rs.UID)
	}
	return nil
}

// adopt makes rs the pod's controller. The patch names the pod's UID and
// version: another pod of that name, or one that somebody else adopted
// meanwhile, is refused and looked at again. A pod that is gone is no error.
func (r *ReplicaSet) adopt(ctx context.Context, rs *appsv1.ReplicaSet, pod *corev1.Pod) (adopted bool, err error) {
	before := pod.DeepCopy()
	if err := controllerutil.SetControllerReference(rs, pod, r.Scheme); err != nil {
		return false, fmt.Errorf("adopt pod %s: %w", pod.Name, err)
	}
	patch, err := preconditioned(before, map[string]any{"ownerReferences": pod.OwnerReferences})
	if err != nil {
		return false, err
	}
	if err := r.Client.Patch(ctx, pod, patch); err != nil {
		return false, wrap(client.IgnoreNotFound(err), "adopt pod "+pod.Name)
	}
	log.FromContext(ctx).V(1).Info("Adopted a pod", "pod", pod.Name)
	return true, nil
}

// release takes rs from the pod's owners. A pod that is gone is no error.
func (r *ReplicaSet) release(ctx context.Context, rs *appsv1.ReplicaSet, pod *corev1.Pod) error {
	before := pod.DeepCopy()
	if err := controllerutil.RemoveOwnerReference(rs, pod, r.Scheme); err != nil {
		return fmt.Errorf("release pod %s: %w", pod.Name, err)
	}
	patch, err := preconditioned(before, map[string]any{"ownerReferences": pod.OwnerReferences})
	if err != nil {
		return err
	}
	log.FromContext(ctx).V(1).Info("Releasing a pod", "pod", pod.Name)
	return wrap(client.IgnoreNotFound(r.Client.Patch(ctx, pod, patch)), "release pod "+pod.Name)
}

// preconditioned is a merge patch of an object's metadata that the server
// refuses for another UID or another version.
func preconditioned(obj client.Object, metadata map[string]any) (client.Patch, error) {
	metadata["uid"], metadata["resourceVersion"] = obj.GetUID(), obj.GetResourceVersion()
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	return client.RawPatch(types.MergePatchType, data), nil
}

func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// orphaned lets pods through that have no controller.
var orphaned = predicate.NewPredicateFuncs(func(obj client.Object) bool {
	return metav1.GetControllerOfNoCopy(obj) == nil
})

// adopters names the ReplicaSets that would adopt the pod.
func (r *ReplicaSet) adopters(ctx context.Context, obj client.Object) []ctrl.Request {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.DeletionTimestamp != nil || len(pod.Labels) == 0 || metav1.GetControllerOfNoCopy(pod) != nil {
		return nil
	}
	var sets appsv1.ReplicaSetList
	if err := r.Client.List(ctx, &sets, client.InNamespace(pod.Namespace)); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the ReplicaSets that could adopt a pod", "pod", pod.Name)
		return nil
	}
	var requests []ctrl.Request
	for _, rs := range sets.Items {
		selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
		if err == nil && matches(selector, pod) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&rs)})
		}
	}
	return requests
}
