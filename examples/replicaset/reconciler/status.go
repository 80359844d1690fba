// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/wherry-dev/wherry/client"
)

// finished tells whether a pod has run its course.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// active tells whether a pod counts towards spec.replicas: it has neither
// finished nor is it on its way out.
func active(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !finished(pod) }

// terminating counts the pods of rs that are on their way out.
func terminating(rs *appsv1.ReplicaSet, selector labels.Selector, pods []corev1.Pod) (n int32) {
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil && !finished(pod) && metav1.IsControlledBy(pod, rs) && matches(selector, pod) {
			n++
		}
	}
	return n
}

// observe is the status of rs as its running pods show it, and after how long
// the next ready pod will be available; zero if none will.
func observe(rs *appsv1.ReplicaSet, running []corev1.Pod, leaving int32, failure error, now time.Time) (status appsv1.ReplicaSetStatus, next time.Duration) {
	status = *rs.Status.DeepCopy()
	status.ObservedGeneration = rs.Generation
	status.Replicas = int32(len(running))
	status.TerminatingReplicas = &leaving
	status.ReadyReplicas, status.FullyLabeledReplicas, status.AvailableReplicas = 0, 0, 0
	template := labels.SelectorFromSet(rs.Spec.Template.Labels)
	for i := range running {
		pod := &running[i]
		if template.Matches(labels.Set(pod.Labels)) {
			status.FullyLabeledReplicas++
		}
		if !ready(pod) {
			continue
		}
		status.ReadyReplicas++
		switch since := readySince(pod); {
		case rs.Spec.MinReadySeconds == 0:
			status.AvailableReplicas++
		case since.IsZero(): // nobody knows since when, so never for long enough
		default:
			left := since.Add(time.Duration(rs.Spec.MinReadySeconds) * time.Second).Sub(now)
			if left <= 0 {
				status.AvailableReplicas++
			} else if next == 0 || left < next {
				next = left
			}
		}
	}
	status.Conditions = failureCondition(status.Conditions, failure, now)
	return status, next
}

// failureCondition sets, keeps or removes the ReplicaFailure condition.
func failureCondition(conditions []appsv1.ReplicaSetCondition, failure error, now time.Time) []appsv1.ReplicaSetCondition {
	var kept []appsv1.ReplicaSetCondition
	var had *appsv1.ReplicaSetCondition
	for i := range conditions {
		if conditions[i].Type == appsv1.ReplicaSetReplicaFailure {
			had = &conditions[i]
			continue
		}
		kept = append(kept, conditions[i])
	}
	var f *failed
	if !errors.As(failure, &f) {
		return kept
	}
	if had != nil { // the first failure stays until there is none
		return append(kept, *had)
	}
	return append(kept, appsv1.ReplicaSetCondition{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(now), Reason: f.reason, Message: f.Error(),
	})
}

// updateStatus writes the status if it differs from what is stored.
func (r *ReplicaSet) updateStatus(ctx context.Context, rs *appsv1.ReplicaSet, status appsv1.ReplicaSetStatus) error {
	if equality.Semantic.DeepEqual(rs.Status, status) {
		return nil
	}
	// A patch of the status alone: nobody else writes these fields, and a
	// spec that changed meanwhile must not turn the report into a conflict.
	// So the two that it is the difference of need no spec either.
	named := metav1.ObjectMeta{Namespace: rs.Namespace, Name: rs.Name}
	before, after := &appsv1.ReplicaSet{ObjectMeta: named, Status: rs.Status}, &appsv1.ReplicaSet{ObjectMeta: named, Status: status}
	if err := r.Client.Status().Patch(ctx, after, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}
