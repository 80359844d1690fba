// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// leastWorthKeeping picks the n pods whose loss hurts least, by the rules that
// Kubernetes documents, the first that tells two pods apart:
//
//  1. not assigned to a node before assigned
//  2. pending before unknown before running
//  3. not ready before ready
//  4. lower deletion cost before higher
//  5. more related pods on the same node before fewer
//  6. ready for a shorter time before longer
//  7. more restarts before fewer
//  8. created later before earlier
//
// The times of 6 and 8 are compared by powers of two, so that not always the
// youngest goes; within one, the UID decides. related are the pods that count
// for 5. It picks none if n is not positive.
func leastWorthKeeping(pods, related []corev1.Pod, n int) []corev1.Pod {
	if n <= 0 {
		return nil
	}
	onNode := map[string]int{}
	for i := range related {
		if related[i].Spec.NodeName != "" {
			onNode[related[i].Spec.NodeName]++
		}
	}
	now := time.Now()
	ranked := slices.Clone(pods)
	slices.SortStableFunc(ranked, func(a, b corev1.Pod) int {
		order := cmp.Or(
			cmp.Compare(worth(&a), worth(&b)),
			cmp.Compare(deletionCost(&a), deletionCost(&b)),
			-cmp.Compare(onNode[a.Spec.NodeName], onNode[b.Spec.NodeName]),
		)
		if order == 0 && ready(&a) {
			order = compareAges(readySince(&a), readySince(&b), now)
		}
		return cmp.Or(
			order,
			-cmp.Compare(restarts(&a), restarts(&b)),
			compareAges(a.CreationTimestamp.Time, b.CreationTimestamp.Time, now),
			cmp.Compare(a.UID, b.UID),
		)
	})
	return ranked[:min(n, len(ranked))]
}

// worth grows with how far a pod has come: rules 1 to 3.
func worth(pod *corev1.Pod) int {
	switch {
	case pod.Spec.NodeName == "":
		return 0
	case pod.Status.Phase == corev1.PodPending:
		return 1
	case pod.Status.Phase == corev1.PodUnknown:
		return 2
	case !ready(pod):
		return 3
	default:
		return 4
	}
}

// deletionCost is what the annotation says; one that is no number counts as
// none.
func deletionCost(pod *corev1.Pod) int64 {
	cost, err := strconv.ParseInt(pod.Annotations[corev1.PodDeletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return cost
}

// compareAges puts the younger first if the ages differ by a power of two. A
// pod whose time is not known counts as the youngest.
func compareAges(a, b, now time.Time) int {
	return cmp.Compare(magnitude(a, now), magnitude(b, now))
}

func magnitude(since, now time.Time) int {
	if since.IsZero() {
		return -1
	}
	return bits.Len64(uint64(max(now.Sub(since), 0) / time.Second))
}

func restarts(pod *corev1.Pod) (most int32) {
	for i := range pod.Status.ContainerStatuses {
		most = max(most, pod.Status.ContainerStatuses[i].RestartCount)
	}
	return most
}

func readyCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func ready(pod *corev1.Pod) bool {
	c := readyCondition(pod)
	return c != nil && c.Status == corev1.ConditionTrue
}

func readySince(pod *corev1.Pod) time.Time {
	if c := readyCondition(pod); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}
