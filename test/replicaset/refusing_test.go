// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package replicaset_test

import (
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
)

// refusing is what happens when the server says no.
var refusing = []behaviour{
	{"a quota that is used up shows, and is not asked for ever", func(r *room) {
		r.quota(3)
		rs := r.set("web", 100)
		r.reach(rs, 3)
		r.fails(rs, "FailedCreate", "exceeded quota")
		r.event(rs, corev1.EventTypeWarning, "FailedCreate", "exceeded quota")
		// One, two and four at once, of which four are refused; then one at a time, ever more rarely.
		const most = 40
		time.Sleep(stay) // how often it tries in this time is what is measured
		if made, refused := r.sent("POST", "pods", false), r.sent("POST", "pods", true); made != 3 || refused > most {
			r.Errorf("%d pods were made, want 3, and %d refused, want at most %d", made, refused, most)
		}
	}},
	{"a quota that is raised is used", func(r *room) {
		q := r.quota(3)
		rs := r.set("web", 12)
		r.reach(rs, 3)
		r.fails(rs, "FailedCreate", "exceeded quota")
		r.raise(q, 8)
		r.reach(rs, 8)
		r.fails(rs, "FailedCreate", "exceeded quota")
		r.raise(q, 20)
		r.expect(rs, 12)
		r.fails(rs, "")
	}},
	{"a set that asks for less is content under the quota", func(r *room) {
		r.quota(2)
		rs := r.set("web", 5)
		r.reach(rs, 2)
		r.fails(rs, "FailedCreate", "exceeded quota")
		r.scale(rs, 2)
		r.expect(rs, 2)
		r.fails(rs, "")
	}},
	{"pods that are refused are made when they are not any more", func(r *room) {
		rs := r.set("web", 2, func(rs *appsv1.ReplicaSet) { rs.Spec.Template.Spec.ServiceAccountName = "nobody" })
		r.fails(rs, "FailedCreate", `serviceaccount "nobody" not found`)
		r.expect(rs, 0)
		r.make(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "nobody"}})
		r.expect(rs, 2)
		r.fails(rs, "")
	}},
	{"a refused replacement leaves the others counted", func(r *room) {
		r.quota(3)
		rs := r.settled("web", 3)
		gone := r.mine(rs)[0]
		r.remove(&gone, now) // the quota is not recounted: nothing here does that
		r.reach(rs, 2)
		r.fails(rs, "FailedCreate", "exceeded quota")
		r.counts(rs, 2, 2, 0, 0, 0)
	}},
	{"the failure keeps its first time and text", func(r *room) {
		r.quota(1)
		rs := r.set("web", 3)
		r.fails(rs, "FailedCreate", "exceeded quota")
		first := r.status(rs).Conditions[0]
		r.merge(rs, `{"spec":{"template":{"metadata":{"annotations":{"note":"n"}}}}}`)
		r.expect(rs, 1)
		if now := r.status(rs).Conditions; len(now) != 1 || now[0] != first {
			r.Errorf("the conditions are %+v, were %+v", now, first)
		}
	}},
	{"pods that may not be deleted show, and go when they may", func(r *room) {
		rs := r.settled("web", 3)
		policy := r.forbidDeletes()
		r.scale(rs, 1)
		r.fails(rs, "FailedDelete", "not now")
		r.event(rs, corev1.EventTypeWarning, "FailedDelete", "not now")
		r.counts(rs, 3, 3, 0, 0, 0)
		r.remove(policy)
		r.expect(rs, 1)
		r.fails(rs, "")
	}},
}

// quota allows the namespace n pods. Nothing counts here what is there: the server itself counts what it lets in.
func (r *room) quota(n int64) *corev1.ResourceQuota {
	r.Helper()
	q := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "quota"},
		Spec:       corev1.ResourceQuotaSpec{Hard: podCount(n)},
	}
	r.make(q)
	r.mergeStatus(q, `{"status":{"hard":{"pods":"%d"},"used":{"pods":"%d"}}}`, n, n)
	r.eventually(func() error {
		if err := r.probe(); !refusal(err) {
			return fmt.Errorf("the quota is not known yet: %v", err)
		}
		return nil
	})
	r.mergeStatus(q, `{"status":{"used":{"pods":"0"}}}`)
	r.eventually(r.probe)
	r.mergeStatus(q, `{"status":{"used":{"pods":"0"}}}`) // the probe was counted
	return q
}

// probe makes a pod and takes it away again. A dry run would not be asked of the quota.
func (r *room) probe() error {
	r.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "probe"}, Spec: corev1.PodSpec{Containers: containers}}
	if err := r.live.Create(r.Context(), pod); err != nil {
		return err
	}
	r.remove(pod, now)
	return nil
}

// raise changes what the quota allows.
func (r *room) raise(q *corev1.ResourceQuota, n int64) {
	r.Helper()
	r.merge(q, `{"spec":{"hard":{"pods":"%d"}}}`, n)
	r.mergeStatus(q, `{"status":{"hard":{"pods":"%d"}}}`, n)
}

func podCount(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(n, resource.DecimalSI)}
}

// forbidDeletes has the server refuse every delete of a pod in the namespace, until the returned object is deleted.
func (r *room) forbidDeletes() client.Object {
	r.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: r.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Delete},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "not now"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policy.Name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: r.namespace},
			}},
		},
	}
	r.make(policy)
	r.make(binding)
	victim := r.pods()[0]
	r.eventually(func() error {
		if err := r.live.Delete(r.Context(), &victim, client.DryRunAll); !refusal(err) {
			return errors.Join(errors.New("a delete is not refused yet"), err)
		}
		return nil
	})
	return binding
}
