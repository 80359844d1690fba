// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package replicaset_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func minReady(seconds int32) func(*appsv1.ReplicaSet) {
	return func(rs *appsv1.ReplicaSet) { rs.Spec.MinReadySeconds = seconds }
}

// reporting is what the status and the events say.
var reporting = []behaviour{
	{"every count", func(r *room) {
		labels := map[string]string{"app": "web", "version": "2"}
		r.pod("ready", old, func(p *corev1.Pod) { p.Labels = labels })
		r.pod("fresh", readySince(0))
		r.pod("not-ready", notReady)
		r.pod("pending", in(corev1.PodPending), func(p *corev1.Pod) { p.Labels = labels })
		rs := r.set("web", 5, minReady(600), func(rs *appsv1.ReplicaSet) { rs.Spec.Template.Labels = labels })
		r.counts(rs, 5, 3, 2, 1, 0)
	}},
	{"readiness comes and goes", func(r *room) {
		rs := r.settled("web", 2)
		pod := r.mine(rs)[0]
		r.become(&pod, readySince(0))
		r.counts(rs, 2, 2, 1, 1, 0)
		r.become(&pod, notReady)
		r.counts(rs, 2, 2, 0, 0, 0)
		if !r.there(&pod) {
			r.Error("a pod that is not ready any more was deleted")
		}
	}},
	{"a pod of unknown phase counts", func(r *room) {
		rs := r.settled("web", 1)
		pod := r.mine(rs)[0]
		r.become(&pod, in(corev1.PodUnknown))
		r.untouched(&pod)
		r.expect(rs, 1)
	}},
	{"a failed pod is replaced and stays to be looked at", func(r *room) {
		rs := r.settled("web", 2)
		failed := r.mine(rs)[0]
		r.become(&failed, in(corev1.PodFailed))
		r.expect(rs, 2)
		r.controlled(&failed, rs)
		if !r.there(&failed) || len(r.pods()) != 3 {
			r.Errorf("the failed pod is there: %v, of %d pods", r.there(&failed), len(r.pods()))
		}
	}},
	{"a succeeded pod is replaced and stays to be looked at", func(r *room) {
		rs := r.settled("web", 1)
		done := r.mine(rs)[0]
		r.become(&done, in(corev1.PodSucceeded))
		r.expect(rs, 1)
		r.counts(rs, 1, 1, 0, 0, 0)
		if !r.there(&done) {
			r.Error("the succeeded pod went")
		}
	}},
	{"finished pods do not count when the set shrinks", func(r *room) {
		rs := r.settled("web", 2)
		failed := r.mine(rs)[0]
		r.become(&failed, in(corev1.PodFailed))
		r.expect(rs, 2)
		r.scale(rs, 1)
		r.expect(rs, 1)
		if !r.there(&failed) {
			r.Error("the failed pod went instead")
		}
	}},
	{"a terminating pod is replaced at once, and counted", func(r *room) {
		rs := r.settled("web", 2)
		leaving := r.mine(rs)[0]
		r.merge(&leaving, `{"metadata":{"finalizers":["example.com/hold"]}}`)
		r.remove(&leaving)
		r.expect(rs, 2)
		r.counts(rs, 2, 2, 0, 0, 1)
		r.letGo(&leaving)
		r.counts(rs, 2, 2, 0, 0, 0)
	}},
	{"a terminating pod that has finished is not counted", func(r *room) {
		rs := r.settled("web", 1)
		leaving := r.mine(rs)[0]
		r.merge(&leaving, `{"metadata":{"finalizers":["example.com/hold"]}}`)
		r.become(&leaving, in(corev1.PodFailed))
		r.expect(rs, 1) // another one
		r.remove(&leaving)
		r.counts(rs, 1, 1, 0, 0, 0)
		r.letGo(&leaving)
	}},
	{"pods with finalizers are let go in their own time", func(r *room) {
		rs := r.settled("web", 2, func(rs *appsv1.ReplicaSet) { rs.Spec.Template.Finalizers = []string{"example.com/hold"} })
		r.scale(rs, 0)
		r.counts(rs, 0, 0, 0, 0, 2)
		for _, p := range r.pods() {
			r.letGo(&p)
		}
		r.counts(rs, 0, 0, 0, 0, 0)
		if n := len(r.pods()); n != 0 {
			r.Errorf("%d pods are left", n)
		}
	}},
	{"a ready pod is available when its time has come", func(r *room) {
		rs := r.settled("web", 1, minReady(3))
		pod := r.mine(rs)[0]
		r.become(&pod, readySince(0))
		since := pod.Status.Conditions[0].LastTransitionTime // in whole seconds
		r.eventually(func() error {
			switch s := r.status(rs); {
			case s.ReadyReplicas != 1:
				return fmt.Errorf("%d pods are ready", s.ReadyReplicas)
			case s.AvailableReplicas == 1:
				return nil
			}
			return fmt.Errorf("it is not available")
		})
		// Without a timer nothing would make either controller look again: late means that this machine does other things.
		const late = 20 * time.Second
		if took := time.Since(since.Time); took < 3*time.Second || took > 3*time.Second+late {
			r.Errorf("it was available %v after it was ready, want 3s", took)
		}
	}},
	{"each pod is available in its own time", func(r *room) {
		rs := r.settled("web", 3, minReady(20))
		pods := r.mine(rs)
		r.become(&pods[0], old)
		r.become(&pods[1], readySince(17*time.Second)) // available in 3 s
		r.become(&pods[2], readySince(5*time.Second))  // and that in 15: a slow machine must see the two apart
		r.counts(rs, 3, 3, 3, -1, 0)
		r.eventually(func() error {
			if s := r.status(rs); s.AvailableReplicas != 2 {
				return fmt.Errorf("%d are available, want 2", s.AvailableReplicas)
			}
			return nil
		})
		r.counts(rs, 3, 3, 3, 3, 0)
	}},
	{"minReadySeconds that change count at once", func(r *room) {
		rs := r.settled("web", 1)
		pod := r.mine(rs)[0]
		r.become(&pod, readySince(0))
		r.counts(rs, 1, 1, 1, 1, 0)
		r.merge(rs, `{"spec":{"minReadySeconds":3600}}`)
		r.counts(rs, 1, 1, 1, 0, 0)
		r.merge(rs, `{"spec":{"minReadySeconds":0}}`)
		r.counts(rs, 1, 1, 1, 1, 0)
	}},
	{"ready since nobody knows when is available without minReadySeconds only", func(r *room) {
		rs := r.settled("web", 1, minReady(1))
		pod := r.mine(rs)[0]
		r.become(&pod, readyAt(metav1.Time{}))
		r.counts(rs, 1, 1, 1, 0, 0)
		r.merge(rs, `{"spec":{"minReadySeconds":0}}`)
		r.counts(rs, 1, 1, 1, 1, 0)
	}},
	{"a relabelled template changes who is fully labelled", func(r *room) {
		rs := r.settled("web", 2)
		r.counts(rs, 2, 2, 0, 0, 0)
		r.merge(rs, `{"spec":{"template":{"metadata":{"labels":{"version":"2"}}}}}`)
		r.counts(rs, 2, 0, 0, 0, 0)
		pod := r.mine(rs)[0]
		r.merge(&pod, `{"metadata":{"labels":{"version":"2"}}}`)
		r.counts(rs, 2, 1, 0, 0, 0)
	}},
	{"a generation that asks for nothing is observed", func(r *room) {
		rs := r.settled("web", 1)
		r.merge(rs, `{"spec":{"template":{"metadata":{"annotations":{"note":"n"}}}}}`)
		r.expect(rs, 1)
	}},
	{"a status that somebody spoiled is put right", func(r *room) {
		rs := r.settled("web", 1)
		rs.Status.Replicas, rs.Status.ReadyReplicas = 9, 9
		if err := r.live.Status().Update(r.Context(), rs); err != nil {
			r.Fatal(err)
		}
		r.expect(rs, 1)
		r.counts(rs, 1, 1, 0, 0, 0)
	}},
	{"conditions of others stay", func(r *room) {
		rs := r.settled("web", 1)
		rs.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: "Odd", Status: corev1.ConditionTrue}}
		if err := r.live.Status().Update(r.Context(), rs); err != nil {
			r.Fatal(err)
		}
		r.scale(rs, 2)
		r.expect(rs, 2)
		if c := r.status(rs).Conditions; len(c) != 1 || c[0].Type != "Odd" {
			r.Errorf("the conditions are %+v", c)
		}
	}},
	{"an event for each pod made and deleted", func(r *room) {
		rs := r.settled("web", 3)
		pods := names(r.mine(rs))
		r.scale(rs, 0)
		for _, name := range pods {
			r.event(rs, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: "+name)
			r.event(rs, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: "+name)
		}
	}},
}
