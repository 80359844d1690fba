// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package replicaset_test

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
)

// lingering is a set that stays for a while when it is deleted.
func lingering(rs *appsv1.ReplicaSet) { rs.Finalizers = []string{"example.com/hold"} }

// leave has a lingering set deleted, and waits until the controller has heard of it: it observes a set made after that.
func (r *room) leave(rs *appsv1.ReplicaSet) {
	r.Helper()
	r.remove(rs, background)
	later := rs.DeepCopy()
	later.ObjectMeta = metav1.ObjectMeta{Namespace: r.witness, GenerateName: "later-"}
	later.Spec.Replicas, later.Spec.Selector.MatchLabels, later.Spec.Template.Labels = new(int32), app("later"), app("later")
	r.make(later)
	r.reach(later, 0)
}

// gone waits until the object is not stored any more.
func (r *room) gone(obj client.Object) {
	r.Helper()
	r.eventually(func() error {
		err := r.live.Get(r.Context(), client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("%s is still there", obj.GetName()), err)
	})
}

// ending is the set's own deletion.
var ending = []behaviour{
	{"deleted in the background its pods follow", func(r *room) {
		rs := r.settled("web", 3)
		r.remove(rs, background)
		r.gone(rs)
		// A controller that hears of the first pod before it hears of the set may replace it once: that one goes, too.
		r.steadily(func() error {
			if left := r.pods(); len(left) > 0 {
				return fmt.Errorf("%v are left", names(left))
			}
			return nil
		})
	}},
	{"deleted in the foreground its pods go first, and none is replaced", func(r *room) {
		last := r.pod("last", held)
		rs := r.settled("web", 3)
		r.remove(rs, client.PropagationPolicy(metav1.DeletePropagationForeground))
		// A controller that hears of a pod before it hears of the set may replace it once, and the garbage collector looks at
		// the set's pods once: such a pod is taken away here.
		r.steadily(func() error {
			left := r.pods()
			for i := range left {
				if left[i].Name != last.Name {
					_ = r.live.Delete(r.Context(), &left[i]) // it may have gone meanwhile
				}
			}
			if len(left) != 1 {
				return fmt.Errorf("%v are left, want last", names(left))
			}
			return nil
		})
		r.counts(rs, 0, 0, 0, 0, 1)
		r.letGo(last)
		r.gone(rs)
	}},
	{"deleted as an orphan maker its pods stay for the next set", func(r *room) {
		rs := r.settled("web", 2)
		kept := names(r.mine(rs))
		r.remove(rs, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		r.gone(rs)
		r.eventually(func() error {
			for _, p := range r.pods() {
				if len(p.OwnerReferences) > 0 {
					return fmt.Errorf("pod %s is controlled by %s", p.Name, controllerOf(&p))
				}
			}
			return nil
		})
		next := r.set("next", 2)
		r.keeps(next, kept...)
	}},
	{"a set on its way out makes no pods", func(r *room) {
		rs := r.settled("web", 2, lingering)
		r.leave(rs)
		gone := r.mine(rs)[0]
		r.remove(&gone, now)
		r.counts(rs, 1, 1, 0, 0, 0)
		if made := r.sent("POST", "pods", false); made != 2 {
			r.Errorf("%d pods were made, want 2", made)
		}
		r.letGo(rs)
	}},
	{"a set on its way out deletes no pods", func(r *room) {
		rs := r.settled("web", 2, lingering)
		r.leave(rs)
		r.scale(rs, 0)
		r.expect(rs, 2)
		r.letGo(rs)
	}},
	{"a set on its way out adopts nobody", func(r *room) {
		rs := r.settled("web", 1, lingering)
		r.leave(rs)
		orphan := r.pod("orphan")
		r.untouched(orphan)
		r.free(orphan)
		r.letGo(rs)
	}},
	{"a set on its way out releases nobody", func(r *room) {
		rs := r.settled("web", 1, lingering)
		r.leave(rs)
		pod := r.mine(rs)[0]
		r.merge(&pod, `{"metadata":{"labels":{"app":"freed"}}}`)
		r.counts(rs, 0, 0, 0, 0, 0)
		r.controlled(&pod, rs)
		r.letGo(rs)
	}},
	{"a set on its way out still reports", func(r *room) {
		rs := r.settled("web", 2, lingering)
		r.leave(rs)
		pod := r.mine(rs)[0]
		r.become(&pod, readySince(0))
		r.counts(rs, 2, 2, 1, 1, 0)
		r.letGo(rs)
	}},
	{"the failure of a set on its way out is over", func(r *room) {
		r.quota(1)
		rs := r.set("web", 2, lingering)
		r.fails(rs, "FailedCreate", "exceeded quota")
		r.leave(rs)
		r.fails(rs, "")
		r.letGo(rs)
	}},
	{"in a namespace that goes nothing fails", func(r *room) {
		rs := r.settled("web", 2)
		stuck := r.pod("stuck", held, labelled("other"))
		r.remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}})
		// Pods go first, and the set only when all have: until then it wants pods that nobody may make.
		r.counts(rs, 0, 0, 0, 0, 0)
		r.steadily(func() error {
			if left := r.pods(); len(left) != 1 || left[0].Name != "stuck" {
				return fmt.Errorf("the pods are %v", names(left))
			}
			return nil
		})
		r.fails(rs, "")
		if refused := r.sent("POST", "pods", true); refused > 20 {
			r.Errorf("%d pods were refused: it should not insist", refused)
		}
		r.letGo(stuck)
		r.gone(rs)
		r.gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}})
	}},
}
