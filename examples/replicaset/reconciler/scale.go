// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/controllerutil"
)

const (
	// burst is the most pods one reconcile creates or deletes. What is left is
	// done by the next one, which the first pod's event brings about.
	burst = 500
	// firstBatch is how many pods are created before anything is known to
	// work; each batch that does is followed by one twice its size, so that a
	// quota that is used up is asked a few times and not burst times.
	firstBatch = 1
	// atOnce bounds the requests under way.
	atOnce = 50
)

// failed is why a ReplicaSet has not as many pods as it should; its reason
// goes into the ReplicaFailure condition.
type failed struct {
	reason string
	err    error
}

func (f *failed) Error() string { return f.err.Error() }
func (f *failed) Unwrap() error { return f.err }

// scale creates or deletes pods until there are as many as wanted, and returns
// the running ones there are then.
func (r *ReplicaSet) scale(ctx context.Context, rs *appsv1.ReplicaSet, running []corev1.Pod) ([]corev1.Pod, error) {
	missing := want(rs) - len(running)
	switch {
	case missing > 0:
		created, err := r.createMany(ctx, rs, min(missing, burst))
		if err != nil {
			err = &failed{reason: "FailedCreate", err: err}
		}
		return append(running, created...), err
	case missing < 0:
		surplus, err := r.surplus(ctx, rs, running, min(-missing, burst))
		if err != nil {
			return running, err
		}
		deleted, err := r.deleteMany(ctx, rs, surplus)
		if err != nil {
			err = &failed{reason: "FailedDelete", err: err}
		}
		return without(running, deleted), err
	}
	return running, nil
}

// createMany creates n pods in batches that double, and stops after a batch
// with an error. Nothing can be created in a namespace that is going away, and
// that is no error: the ReplicaSet goes with it.
func (r *ReplicaSet) createMany(ctx context.Context, rs *appsv1.ReplicaSet, n int) ([]corev1.Pod, error) {
	created := make([]corev1.Pod, 0, n)
	for batch := firstBatch; n > 0; batch *= 2 {
		size := min(batch, n)
		pods, errs := make([]*corev1.Pod, size), make([]error, size)
		each(size, func(i int) { pods[i], errs[i] = r.create(ctx, rs) })
		for _, pod := range pods {
			if pod != nil {
				created = append(created, *pod)
			}
		}
		if err := firstOf(errs); err != nil {
			if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
				return created, nil
			}
			r.event(rs, nil, corev1.EventTypeWarning, "FailedCreate", "CreatePod", "Error creating: %v", err)
			return created, err
		}
		n -= size
	}
	return created, nil
}

// firstOf is the first error there is: those of one batch say the same.
func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// each runs do for 0 to n-1, at most atOnce at a time, and waits. The caller's
// own goroutine does its share.
func each(n int, do func(int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var others sync.WaitGroup
	for range min(n, atOnce) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// create makes one pod from the template, owned by rs.
func (r *ReplicaSet) create(ctx context.Context, rs *appsv1.ReplicaSet) (*corev1.Pod, error) {
	template := rs.Spec.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: rs.Name + "-",
			Namespace:    rs.Namespace,
			Labels:       template.Labels,
			Annotations:  template.Annotations,
			Finalizers:   template.Finalizers,
		},
		Spec: template.Spec,
	}
	if err := controllerutil.SetControllerReference(rs, pod, r.Scheme); err != nil {
		return nil, err
	}
	if err := r.Client.Create(ctx, pod); err != nil {
		return nil, err
	}
	r.event(rs, pod, corev1.EventTypeNormal, "SuccessfulCreate", "CreatePod", "Created pod: %s", pod.Name)
	return pod, nil
}

// deleteMany deletes pods and returns those that are gone or on their way out.
// Each delete names the pod's UID, so that a namesake is left alone.
func (r *ReplicaSet) deleteMany(ctx context.Context, rs *appsv1.ReplicaSet, pods []corev1.Pod) ([]corev1.Pod, error) {
	errs := make([]error, len(pods))
	each(len(pods), func(i int) {
		pod := &pods[i] // the cache's own: nobody changes it here
		err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
		if errs[i] = wrap(client.IgnoreNotFound(err), "delete surplus pod "+pod.Name); errs[i] == nil {
			r.event(rs, pod, corev1.EventTypeNormal, "SuccessfulDelete", "DeletePod", "Deleted pod: %s", pod.Name)
		}
	})
	deleted := make([]corev1.Pod, 0, len(pods))
	for i := range pods {
		if errs[i] == nil {
			deleted = append(deleted, pods[i])
		}
	}
	err := firstOf(errs)
	if err != nil {
		r.event(rs, nil, corev1.EventTypeWarning, "FailedDelete", "DeletePod", "Error deleting: %v", err)
	}
	return deleted, err
}

// surplus picks the n of rs's running pods that go.
func (r *ReplicaSet) surplus(ctx context.Context, rs *appsv1.ReplicaSet, running []corev1.Pod, n int) ([]corev1.Pod, error) {
	if n == len(running) {
		return running, nil // nothing to choose
	}
	related, err := r.related(ctx, rs)
	if err != nil {
		return nil, err
	}
	return leastWorthKeeping(running, related, n), nil
}

// related are the running pods of all ReplicaSets that share rs's controller,
// so of one Deployment: those that match a selector of theirs. Without a
// controller there are none. Kubernetes' own controller sees it so, too.
func (r *ReplicaSet) related(ctx context.Context, rs *appsv1.ReplicaSet) ([]corev1.Pod, error) {
	owner := metav1.GetControllerOfNoCopy(rs)
	if owner == nil {
		return nil, nil
	}
	var sets appsv1.ReplicaSetList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&sets, &pods} {
		if err := r.Client.List(ctx, list, client.InNamespace(rs.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("look for the siblings of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
		}
	}
	var selectors []labels.Selector
	for i := range sets.Items {
		if o := metav1.GetControllerOfNoCopy(&sets.Items[i]); o == nil || o.UID != owner.UID {
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(sets.Items[i].Spec.Selector); err == nil { // else it has no pods
			selectors = append(selectors, selector)
		}
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return !active(&pod) || !slices.ContainsFunc(selectors, func(s labels.Selector) bool { return matches(s, &pod) })
	}), nil
}

// without returns pods less those in gone, compared by UID.
func without(pods, gone []corev1.Pod) []corev1.Pod {
	uids := make(map[types.UID]bool, len(gone))
	for _, pod := range gone {
		uids[pod.UID] = true
	}
	var left []corev1.Pod
	for _, pod := range pods {
		if !uids[pod.UID] {
			left = append(left, pod)
		}
	}
	return left
}
