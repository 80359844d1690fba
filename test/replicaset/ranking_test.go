// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package replicaset_test

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

// is is what a pod is like.
type is []func(*corev1.Pod)

// goes is a case of two pods of which one is surplus.
func goes(first, stays is) func(*room) {
	return func(r *room) {
		r.pod("goes", first...)
		r.pod("stays", stays...)
		r.cut(2, "stays")
	}
}

// cut makes a set that adopts n pods, scales it to as many as should stay, and wants those to.
func (r *room) cut(n int, stays ...string) {
	r.Helper()
	r.settled("web", int32(n))
	if made := r.sent("POST", "pods", false); made > 0 {
		r.Fatalf("%d pods were made beside the ones to choose from", made)
	}
	r.cutTo("web", stays...)
}

// cutTo scales a set to as many pods as should stay, and wants those to.
func (r *room) cutTo(name string, stays ...string) {
	r.Helper()
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
	r.get(rs)
	r.scale(rs, len(stays))
	r.keeps(rs, stays...)
}

var (
	old     = readySince(time.Hour)
	running = is{on("n1"), old}
)

// ageGap is so long that two pods made that far apart differ in age by more than a factor of two when they are compared, which
// a machine that does other things does a while after they were made.
const ageGap = 15 * time.Second

// ranking is who goes first, rule by rule, as Kubernetes documents it. The stay-behind of each case is the one that a wrong
// order or the next rule would take.
var ranking = []behaviour{
	{"unassigned goes before assigned", goes(is{}, is{on("n1")})},
	{"unassigned goes before assigned although it is ready", goes(is{old}, is{on("n1"), in(corev1.PodPending)})},
	{"pending goes before unknown", goes(is{on("n1"), in(corev1.PodPending), costs("5")}, is{on("n1"), in(corev1.PodUnknown)})},
	{"unknown goes before running", goes(is{on("n1"), in(corev1.PodUnknown), costs("5")}, is{on("n1"), notReady})},
	{"among unassigned the phase counts", goes(is{in(corev1.PodPending), costs("5")}, is{notReady})},
	{"among unassigned readiness counts", goes(is{notReady, costs("5")}, is{old})},
	{"not ready goes before ready", goes(is{on("n1"), notReady, costs("5")}, running)},
	{"the cheaper goes", goes(is{on("n1"), old, costs("-5")}, is{on("n1"), readySince(time.Second), restarted(3)})},
	{"no cost is a cost of zero", goes(running, is{on("n1"), readySince(time.Second), costs("1")})},
	{"ready counts more than cost", goes(is{on("n1"), notReady, costs(precious)}, is{on("n1"), old, costs("-100")})},
	{"ready for a shorter time goes", goes(is{on("n1"), readySince(time.Minute)}, is{on("n1"), old, restarted(9)})},
	{"restarted more often goes", goes(restartedTimes(3), restartedTimes(1))},
	{"a sidecar restarted more often goes", goes(sidecarRestarted(3), sidecarRestarted(1))},
	{"the most restarted container counts", goes(
		is{on("n1"), readyAt(hourAgo), twoRestarts(0, 5)},
		is{on("n1"), readyAt(hourAgo), twoRestarts(3, 3)},
	)},
	{"made later goes", func(r *room) {
		r.pod("older", on("n1"), notReady)
		time.Sleep(ageGap) // creation times are the server's
		r.pod("newer", on("n1"), notReady)
		r.cut(2, "older")
	}},
	{"the crowded goes before the lone", func(r *room) {
		r.pod("a", on("crowded"), old)
		r.pod("b", on("crowded"), old)
		r.pod("lone", on("free"), readySince(time.Second), restarted(3))
		rs := r.settled("web", 3, controlledBy(r.configMap("deployment")))
		r.scale(rs, 2)
		r.reach(rs, 2)
		if left := names(r.mine(rs)); left[len(left)-1] != "lone" {
			r.Errorf("%v stay", left)
		}
	}},
	// Kubernetes documents this rule for every set, but looks for crowds among the sets of one owner only.
	{"of a set without an owner nobody is crowded", func(r *room) {
		r.pod("a", on("crowded"), old)
		r.pod("b", on("crowded"), old)
		r.pod("lone", on("free"), readySince(time.Second))
		r.cut(3, "a", "b")
	}},
	{"cost counts more than crowd", func(r *room) {
		r.pod("a", on("crowded"), old)
		r.pod("b", on("crowded"), old)
		r.pod("lone", on("free"), old, costs("-1"))
		r.settled("web", 3, controlledBy(r.configMap("deployment")))
		r.cutTo("web", "a", "b")
	}},
	{"siblings of one owner crowd a node", func(r *room) {
		owner := r.configMap("deployment")
		of := func(version string) func(*appsv1.ReplicaSet) {
			return func(rs *appsv1.ReplicaSet) {
				labels := map[string]string{"app": "web", "version": version}
				controlledBy(owner)(rs)
				rs.Spec.Selector.MatchLabels, rs.Spec.Template.Labels = labels, labels
			}
		}
		version := func(v string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels["version"] = v } }
		r.pod("sibling", version("1"), on("crowded"), old)
		r.pod("crowded", version("2"), on("crowded"), old)
		r.pod("lone", version("2"), on("free"), readySince(time.Second), restarted(3))
		r.settled("first", 1, of("1"))
		r.settled("second", 2, of("2"))
		r.cutTo("second", "lone")
	}},
}

// controlledBy gives a set an owner, as a Deployment is one.
func controlledBy(owner client.Object) func(*appsv1.ReplicaSet) {
	return func(rs *appsv1.ReplicaSet) {
		rs.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}}
	}
}

// hourAgo is one moment for all: two pods that are ready since exactly the same time.
var hourAgo = metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))

func readyAt(since metav1.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		readySince(0)(p)
		p.Status.Conditions[0].LastTransitionTime = since
	}
}

// restartedTimes is a ready pod whose container restarted n times.
func restartedTimes(n int32) is { return is{on("n1"), readyAt(hourAgo), restarted(n)} }

// sidecarRestarted is a ready pod whose sidecar restarted n times and whose container twice.
func sidecarRestarted(n int32) is {
	return is{on("n1"), readyAt(hourAgo), restarted(2), func(p *corev1.Pod) {
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = []corev1.Container{{Name: "s", Image: "example.com/s:1", RestartPolicy: &always}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "s", RestartCount: n}}
	}}
}

// twoRestarts is a pod with two containers.
func twoRestarts(a, b int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "d", Image: "example.com/d:1"})
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: a}, {Name: "d", RestartCount: b}}
	}
}
