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
	"k8s.io/utils/ptr"
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
//  7. more restarts before fewer, of containers, then of sidecars
//  8. created later before earlier
//
// The times of 6 and 8 are compared by powers of two, so that not always the
// youngest goes; within one, the UID decides, before 7 even. related are the
// pods that count for 5. It picks none if n is not positive.
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
			truth(a.Spec.NodeName != "", b.Spec.NodeName != ""),
			cmp.Compare(progress(&a), progress(&b)),
			truth(ready(&a), ready(&b)),
			cmp.Compare(deletionCost(&a), deletionCost(&b)),
			-cmp.Compare(onNode[a.Spec.NodeName], onNode[b.Spec.NodeName]),
		)
		if order == 0 && ready(&a) {
			order = compareAges(&a, &b, readySince(&a), readySince(&b), now)
		}
		return cmp.Or(
			order,
			-cmp.Compare(restarts(&a), restarts(&b)),
			-cmp.Compare(sidecarRestarts(&a), sidecarRestarts(&b)),
			compareAges(&a, &b, a.CreationTimestamp.Time, b.CreationTimestamp.Time, now),
			cmp.Compare(a.UID, b.UID),
		)
	})
	return ranked[:min(n, len(ranked))]
}

// truth puts false before true.
func truth(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// progress is how far a pod has come, by rule 2.
func progress(pod *corev1.Pod) int {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	default:
		return 0
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

// compareAges puts the pod with the later time first if the ages differ by a
// power of two, and else, if the times differ at all, the one with the smaller
// UID. A time that is not known counts as the latest.
func compareAges(a, b *corev1.Pod, timeA, timeB, now time.Time) int {
	if timeA.Equal(timeB) {
		return 0
	}
	return cmp.Or(cmp.Compare(magnitude(timeA, now), magnitude(timeB, now)), cmp.Compare(a.UID, b.UID))
}

func magnitude(since, now time.Time) int {
	if since.IsZero() {
		return -1
	}
	return bits.Len64(uint64(max(now.Sub(since), 0)))
}

// restarts is how often the pod's worst container restarted.
func restarts(pod *corev1.Pod) (most int32) {
	for i := range pod.Status.ContainerStatuses {
		most = max(most, pod.Status.ContainerStatuses[i].RestartCount)
	}
	return most
}

// sidecarRestarts is how often its worst sidecar did: an init container that
// runs on.
func sidecarRestarts(pod *corev1.Pod) (most int32) {
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
			return c.Name == status.Name && ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
		}) {
			most = max(most, status.RestartCount)
		}
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
