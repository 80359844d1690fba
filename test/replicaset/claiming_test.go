// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package replicaset_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
)

// controlled waits until the pod has the set as its one controller.
func (r *room) controlled(pod *corev1.Pod, rs *appsv1.ReplicaSet) {
	r.Helper()
	r.eventually(func() error {
		if r.get(pod); !metav1.IsControlledBy(pod, rs) {
			return fmt.Errorf("pod %s is controlled by %s", pod.Name, controllerOf(pod))
		}
		return nil
	})
}

// free waits until nobody controls the pod.
func (r *room) free(pod *corev1.Pod) {
	r.Helper()
	r.eventually(func() error {
		if r.get(pod); metav1.GetControllerOf(pod) != nil {
			return fmt.Errorf("pod %s is controlled by %s", pod.Name, controllerOf(pod))
		}
		return nil
	})
}

func (r *room) configMap(name string) *corev1.ConfigMap {
	r.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
	r.make(m)
	return m
}

const precious = "100" // a deletion cost that keeps a pod from being the surplus

// claiming is whose a pod is.
var claiming = []behaviour{
	{"an orphan that is there is adopted", func(r *room) {
		orphan := r.pod("orphan")
		rs := r.set("web", 1)
		r.controlled(orphan, rs)
		r.keeps(rs, "orphan")
		if len(orphan.OwnerReferences) != 1 || orphan.OwnerReferences[0].BlockOwnerDeletion == nil || !*orphan.OwnerReferences[0].BlockOwnerDeletion {
			r.Errorf("the owners are %+v", orphan.OwnerReferences)
		}
		if n := r.sent("POST", "pods", false); n > 0 {
			r.Errorf("%d pods were made beside the orphan", n)
		}
	}},
	{"an orphan that comes is adopted, and one pod too many goes", func(r *room) {
		rs := r.settled("web", 2)
		orphan := r.pod("orphan", costs(precious))
		r.controlled(orphan, rs)
		r.expect(rs, 2)
		if !r.there(orphan) {
			r.Error("the adopted pod went although its deletion costs most")
		}
	}},
	{"an orphan that gets the labels is adopted", func(r *room) {
		rs := r.settled("web", 1)
		orphan := r.pod("orphan", labelled("db"), costs(precious))
		r.untouched(orphan)
		r.merge(orphan, `{"metadata":{"labels":{"app":"web"}}}`)
		r.controlled(orphan, rs)
		r.keeps(rs, "orphan")
	}},
	{"fewer orphans than asked for are made up for", func(r *room) {
		r.pod("orphan")
		r.expect(r.set("web", 3), 3)
		if n := r.sent("POST", "pods", false); n != 2 {
			r.Errorf("%d pods were made, want 2", n)
		}
	}},
	{"more orphans than asked for are cut down", func(r *room) {
		for i := range 4 {
			r.pod(fmt.Sprint("orphan-", i))
		}
		r.expect(r.set("web", 2), 2)
		if made, deleted := r.sent("POST", "pods", false), r.sent("DELETE", "pods", false); made != 0 || deleted != 2 {
			r.Errorf("%d pods were made, %d deleted", made, deleted)
		}
	}},
	{"an orphan with other labels is left alone", func(r *room) {
		orphan := r.pod("orphan", labelled("db"))
		r.expect(r.set("web", 1), 1)
		r.untouched(orphan)
		r.free(orphan)
	}},
	{"an orphan of another namespace is left alone", func(r *room) {
		elsewhere := r.namespace + "-b"
		r.makeNamespace(elsewhere)
		orphan := r.pod("orphan", func(p *corev1.Pod) { p.Namespace = elsewhere })
		r.expect(r.set("web", 1), 1)
		r.untouched(orphan)
		r.free(orphan)
	}},
	{"a finished orphan is left alone", func(r *room) {
		failed := r.pod("failed", in(corev1.PodFailed))
		succeeded := r.pod("succeeded", in(corev1.PodSucceeded))
		r.expect(r.set("web", 1), 1)
		for _, p := range []*corev1.Pod{failed, succeeded} {
			r.untouched(p)
			r.free(p)
		}
	}},
	{"an orphan on its way out is left alone", func(r *room) {
		orphan := r.pod("orphan", held)
		r.remove(orphan)
		r.expect(r.set("web", 1), 1)
		r.untouched(orphan)
		r.free(orphan)
		r.letGo(orphan)
	}},
	{"a pod of another controller is left alone", func(r *room) {
		theirs := r.pod("theirs", ownedBy("ConfigMap", "v1", r.configMap("owner"), true))
		r.expect(r.set("web", 1), 1)
		r.untouched(theirs)
		if got := controllerOf(theirs); got != "ConfigMap owner" {
			r.Errorf("it is controlled by %s", got)
		}
	}},
	{"a pod with an owner that does not control it is adopted, and keeps the owner", func(r *room) {
		shared := r.pod("shared", ownedBy("ConfigMap", "v1", r.configMap("owner"), false))
		rs := r.set("web", 1)
		r.controlled(shared, rs)
		r.keeps(rs, "shared")
		if len(shared.OwnerReferences) != 2 {
			r.Errorf("the owners are %+v", shared.OwnerReferences)
		}
	}},
	{"a pod that the set owns without controlling it becomes controlled", func(r *room) {
		rs := r.settled("web", 1)
		pod := r.pod("half", costs(precious), ownedBy("ReplicaSet", "apps/v1", rs, false))
		r.controlled(pod, rs)
		r.keeps(rs, "half")
		if len(pod.OwnerReferences) != 1 {
			r.Errorf("the owners are %+v", pod.OwnerReferences)
		}
	}},
	{"a pod that the set owns without controlling it, with other labels, is left alone", func(r *room) {
		rs := r.settled("web", 1)
		pod := r.pod("half", labelled("db"), ownedBy("ReplicaSet", "apps/v1", rs, false))
		r.expect(rs, 1)
		r.untouched(pod)
	}},
	{"a relabelled pod is released whole, and replaced", func(r *room) {
		rs := r.settled("web", 2)
		freed := r.mine(rs)[0]
		r.merge(&freed, `{"metadata":{"labels":{"app":"freed"},"annotations":{"note":"n"}}}`)
		r.free(&freed)
		r.expect(rs, 2)
		if r.get(&freed); len(freed.OwnerReferences) != 0 || freed.DeletionTimestamp != nil || freed.Labels["app"] != "freed" || freed.Annotations["note"] != "n" {
			r.Errorf("the freed pod is %+v", freed.ObjectMeta)
		}
	}},
	{"a released pod keeps its other owners", func(r *room) {
		shared := r.pod("shared", ownedBy("ConfigMap", "v1", r.configMap("owner"), false))
		rs := r.set("web", 1)
		r.controlled(shared, rs)
		r.merge(shared, `{"metadata":{"labels":{"app":"freed"}}}`)
		r.free(shared)
		if len(shared.OwnerReferences) != 1 || shared.OwnerReferences[0].Kind != "ConfigMap" {
			r.Errorf("the owners are %+v", shared.OwnerReferences)
		}
		r.expect(rs, 1)
	}},
	{"a released pod can come back", func(r *room) {
		kept := r.pod("kept", costs(precious))
		rs := r.set("web", 1)
		r.controlled(kept, rs)
		r.merge(kept, `{"metadata":{"labels":{"app":"freed"}}}`)
		r.free(kept)
		r.expect(rs, 1)
		r.merge(kept, `{"metadata":{"labels":{"app":"web"}}}`)
		r.controlled(kept, rs)
		r.keeps(rs, "kept")
	}},
	{"a finished pod is not released", func(r *room) {
		rs := r.settled("web", 1)
		failed := r.mine(rs)[0]
		r.become(&failed, in(corev1.PodFailed))
		r.expect(rs, 1)
		r.merge(&failed, `{"metadata":{"labels":{"app":"freed"}}}`)
		r.untouched(&failed)
		r.controlled(&failed, rs)
	}},
	{"a pod on its way out is not released", func(r *room) {
		rs := r.settled("web", 1)
		leaving := r.mine(rs)[0]
		r.merge(&leaving, `{"metadata":{"finalizers":["example.com/hold"]}}`)
		r.remove(&leaving)
		r.expect(rs, 1)
		r.merge(&leaving, `{"metadata":{"labels":{"app":"freed"}}}`)
		r.untouched(&leaving)
		r.controlled(&leaving, rs)
		r.counts(rs, 1, 1, 0, 0, 0) // it does not match any more, so it does not count either
		r.letGo(&leaving)
	}},
	{"a pod whose controller is taken off by hand is adopted again", func(r *room) {
		rs := r.settled("web", 1)
		pod := r.mine(rs)[0]
		r.merge(&pod, `{"metadata":{"ownerReferences":null,"annotations":{%q:%q}}}`, corev1.PodDeletionCost, precious)
		r.controlled(&pod, rs)
		r.keeps(rs, pod.Name)
	}},
	{"a namesake of an adopted pod is another pod", func(r *room) {
		pod := r.pod("name")
		rs := r.set("web", 1)
		r.controlled(pod, rs)
		r.remove(pod, now)
		namesake := r.pod("name", labelled("db"))
		r.expect(rs, 1)
		r.scale(rs, 0)
		r.expect(rs, 0)
		r.free(namesake)
		if !r.there(namesake) {
			r.Error("the namesake was deleted")
		}
	}},
	{"overlapping sets keep to their own pods", func(r *room) {
		a, b := r.set("a", 2), r.set("b", 3)
		r.expect(a, 2)
		r.expect(b, 3)
		r.scale(a, 4)
		r.scale(b, 1)
		r.expect(a, 4)
		r.expect(b, 1)
		if n := len(r.pods()); n != 5 {
			r.Errorf("there are %d pods, want 5", n)
		}
	}},
	{"an orphan of overlapping sets gets one of them", func(r *room) {
		a, b := r.settled("a", 1), r.settled("b", 1)
		orphan := r.pod("orphan", costs(precious))
		r.eventually(func() error {
			if r.get(orphan); metav1.GetControllerOf(orphan) == nil {
				return fmt.Errorf("nobody has it")
			}
			return nil
		})
		r.expect(a, 1)
		r.expect(b, 1)
		if r.get(orphan); len(orphan.OwnerReferences) != 1 {
			r.Errorf("the owners are %+v", orphan.OwnerReferences)
		}
	}},
	{"a pod relabelled from one set to another moves", func(r *room) {
		db := func(rs *appsv1.ReplicaSet) {
			rs.Spec.Selector.MatchLabels, rs.Spec.Template.Labels = app("db"), app("db")
		}
		from, to := r.settled("web", 1), r.settled("db", 1, db)
		pod := r.mine(from)[0]
		r.merge(&pod, `{"metadata":{"labels":{"app":"db"},"annotations":{%q:%q}}}`, corev1.PodDeletionCost, precious)
		r.controlled(&pod, to)
		r.keeps(to, pod.Name)
		r.expect(from, 1)
	}},
	{"another selector, by way of orphans", func(r *room) {
		rs := r.settled("web", 3)
		chosen := r.mine(rs)[0]
		r.merge(&chosen, `{"metadata":{"labels":{"version":"2"}}}`)
		r.expect(rs, 3)
		r.remove(rs, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		r.free(&chosen)
		next := r.set("next", 1, func(rs *appsv1.ReplicaSet) {
			both := map[string]string{"app": "web", "version": "2"}
			rs.Spec.Selector.MatchLabels, rs.Spec.Template.Labels = both, both
		})
		r.keeps(next, chosen.Name)
		for _, p := range r.pods() {
			if p.Name != chosen.Name && metav1.GetControllerOf(&p) != nil {
				r.Errorf("pod %s is controlled by %s", p.Name, controllerOf(&p))
			}
		}
	}},
}
