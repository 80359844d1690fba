// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package replicaset_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// scaling is how many pods there are, and what they are made from.
var scaling = []behaviour{
	{"as many pods as asked for, made from the template", func(r *room) {
		rs := r.settled("web", 3, func(rs *appsv1.ReplicaSet) {
			rs.Spec.Template.Labels["tier"] = "front"
			rs.Spec.Template.Annotations = map[string]string{"note": "n"}
			rs.Spec.Template.Finalizers = []string{"example.com/hold"}
		})
		r.expect(rs, 3)
		owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: rs.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}
		for _, p := range r.mine(rs) {
			if len(p.OwnerReferences) != 1 || !equalRef(p.OwnerReferences[0], owner) {
				r.Errorf("pod %s has the owners %+v", p.Name, p.OwnerReferences)
			}
			if !maps.Equal(p.Labels, rs.Spec.Template.Labels) || p.Annotations["note"] != "n" || !slices.Equal(p.Finalizers, rs.Spec.Template.Finalizers) {
				r.Errorf("pod %s is not like the template: %+v", p.Name, p.ObjectMeta)
			}
			if p.GenerateName != "web-" || p.Spec.Containers[0].Image != containers[0].Image {
				r.Errorf("pod %s: generateName %q, image %q", p.Name, p.GenerateName, p.Spec.Containers[0].Image)
			}
			r.letGo(&p)
		}
	}},
	{"scaled up the old pods stay", func(r *room) {
		rs := r.settled("web", 1)
		old := names(r.mine(rs))
		r.scale(rs, 4)
		r.expect(rs, 4)
		if !slices.Contains(names(r.mine(rs)), old[0]) {
			r.Errorf("pod %s went while the set grew", old[0])
		}
	}},
	{"scaled down some pods stay and none is new", func(r *room) {
		rs := r.settled("web", 5)
		old := names(r.mine(rs))
		r.scale(rs, 2)
		r.expect(rs, 2)
		for _, name := range names(r.mine(rs)) {
			if !slices.Contains(old, name) {
				r.Errorf("pod %s is new", name)
			}
		}
	}},
	{"scaled to zero", func(r *room) {
		rs := r.settled("web", 3)
		r.scale(rs, 0)
		r.expect(rs, 0)
		if left := r.pods(); len(left) > 0 {
			r.Errorf("%v are left", names(left))
		}
	}},
	{"zero from the start is observed", func(r *room) {
		r.expect(r.set("web", 0), 0)
		if n := r.sent("POST", "pods", false); n > 0 {
			r.Errorf("%d pods were made", n)
		}
	}},
	{"a number not told means one", func(r *room) {
		r.expect(r.set("web", 0, func(rs *appsv1.ReplicaSet) { rs.Spec.Replicas = nil }), 1)
	}},
	{"a deleted pod is replaced", func(r *room) {
		rs := r.settled("web", 2)
		gone := r.mine(rs)[0]
		r.remove(&gone, now)
		r.eventually(func() error {
			if slices.Contains(names(r.mine(rs)), gone.Name) {
				return fmt.Errorf("%s is still there", gone.Name)
			}
			return nil
		})
		r.expect(rs, 2)
	}},
	{"many at once, not one too many", func(r *room) {
		rs := r.set("web", 60)
		r.expect(rs, 60)
		r.scale(rs, 7)
		r.expect(rs, 7)
		r.scale(rs, 30)
		r.expect(rs, 30)
		if made, deleted := r.sent("POST", "pods", false), r.sent("DELETE", "pods", false); made != 83 || deleted != 53 {
			r.Errorf("%d pods were made and %d deleted, want 83 and 53", made, deleted)
		}
	}},
	{"a number that keeps changing ends at the last", func(r *room) {
		rs := r.set("web", 5)
		for _, n := range []int{0, 7, 1, 4, 2} {
			r.scale(rs, n)
		}
		r.expect(rs, 2)
	}},
	{"a new template is for new pods only", func(r *room) {
		rs := r.settled("web", 2)
		old := names(r.mine(rs))
		r.merge(rs, `{"spec":{"template":{"metadata":{"labels":{"version":"2"}},"spec":{"containers":[{"name":"c","image":"example.com/c:2"}]}}}}`)
		r.expect(rs, 2)
		if got := names(r.mine(rs)); !slices.Equal(got, old) {
			r.Errorf("the pods are %v, were %v", got, old)
		}
		r.scale(rs, 3)
		r.expect(rs, 3)
		for _, p := range r.mine(rs) {
			isOld := slices.Contains(old, p.Name)
			if image := p.Spec.Containers[0].Image; isOld != (image == containers[0].Image) || isOld != (p.Labels["version"] == "") {
				r.Errorf("pod %s (old: %v) has the image %s and the labels %v", p.Name, isOld, image, p.Labels)
			}
		}
	}},
	{"a name as long as may be", func(r *room) {
		long := strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63) + "." + strings.Repeat("d", 61)
		r.expect(r.set(long, 2), 2)
	}},
	{"at rest nothing is written", func(r *room) {
		rs := r.settled("web", 3)
		pod := r.mine(rs)[0]
		r.become(&pod, readySince(0))
		r.counts(rs, 3, 3, 1, 1, 0)
		before := r.written()
		r.stays(func() error {
			if n := r.written(); n != before {
				return fmt.Errorf("%d writes at rest", n-before)
			}
			return nil
		})
	}},
	{"a set of the same name as one before", func(r *room) {
		first := r.settled("web", 2)
		r.remove(first, background)
		second := r.settled("web", 3)
		r.expect(second, 3)
		r.eventually(func() error {
			if left := r.mine(first); len(left) > 0 {
				return fmt.Errorf("%v of the first set are left", names(left))
			}
			return nil
		})
	}},
	{"two sets in one namespace keep to their own", func(r *room) {
		web := r.set("web", 3)
		db := r.set("db", 2, func(rs *appsv1.ReplicaSet) {
			rs.Spec.Selector.MatchLabels, rs.Spec.Template.Labels = app("db"), app("db")
		})
		r.expect(web, 3)
		r.expect(db, 2)
		r.scale(web, 1)
		r.expect(web, 1)
		r.expect(db, 2)
	}},
	{"a selector of expressions", func(r *room) {
		other := r.pod("other", labelled("batch"))
		rs := r.set("web", 2, func(rs *appsv1.ReplicaSet) {
			rs.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web", "db"}},
				{Key: "canary", Operator: metav1.LabelSelectorOpDoesNotExist},
			}}
		})
		db := r.pod("db", labelled("db"), costs(precious))
		canary := r.pod("canary", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web", "canary": "yes"} })
		r.controlled(db, rs)
		r.expect(rs, 2)
		r.untouched(other)
		r.untouched(canary)
		r.free(canary)
	}},
}

func equalRef(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		ptr.Equal(a.Controller, b.Controller) && ptr.Equal(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

// controllerOf tells who controls the pod, in words.
func controllerOf(p *corev1.Pod) string {
	if ref := metav1.GetControllerOf(p); ref != nil {
		return ref.Kind + " " + ref.Name
	}
	return "nobody"
}
