// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
)

// ownedPods lists the pods that rs controls, dead ones included.
func ownedPods(ctx context.Context, from client.Reader, rs *appsv1.ReplicaSet) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("selector of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	var list corev1.PodList
	err = from.List(ctx, &list, client.InNamespace(rs.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("list pods of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, rs) }), nil
}

// active are the pods that count towards spec.replicas: neither finished nor
// on their way out.
func active(pods []corev1.Pod) []corev1.Pod {
	var out []corev1.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			out = append(out, pod)
		}
	}
	return out
}

// leastWorthKeeping picks the n pods whose loss hurts least: not yet assigned
// to a node first, then pending, then not ready, then the youngest. It picks
// none if n is not positive.
func leastWorthKeeping(pods []corev1.Pod, n int) []corev1.Pod {
	if n <= 0 {
		return nil
	}
	ranked := slices.Clone(pods)
	slices.SortStableFunc(ranked, func(a, b corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(worth(&a), worth(&b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return ranked[:min(n, len(ranked))]
}

// worth grows with how far a pod has come.
func worth(pod *corev1.Pod) int {
	switch {
	case pod.Spec.NodeName == "":
		return 0
	case pod.Status.Phase == corev1.PodPending:
		return 1
	case !ready(pod):
		return 2
	default:
		return 3
	}
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// without returns pods less those in gone, compared by UID.
func without(pods, gone []corev1.Pod) []corev1.Pod {
	uids := make(map[types.UID]bool, len(gone))
	for _, pod := range gone {
		uids[pod.UID] = true
	}
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return uids[pod.UID] })
}

// observe is the status of rs as its active pods show it.
func observe(rs *appsv1.ReplicaSet, pods []corev1.Pod) appsv1.ReplicaSetStatus {
	status := *rs.Status.DeepCopy()
	status.Replicas = int32(len(pods))
	status.ReadyReplicas, status.FullyLabeledReplicas = 0, 0
	template := labels.SelectorFromSet(rs.Spec.Template.Labels)
	for _, pod := range pods {
		if template.Matches(labels.Set(pod.Labels)) {
			status.FullyLabeledReplicas++
		}
		if ready(&pod) {
			status.ReadyReplicas++
		}
	}
	status.ObservedGeneration = rs.Generation
	return status
}
