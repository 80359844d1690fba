// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wherry-dev/wherry/client"
)

func eviction(p *corev1.Pod) *policyv1.Eviction {
	return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
}

func binding(p *corev1.Pod, node string) *corev1.Binding {
	return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
}

var subresourceCases = []Case{
	{"scale/get", answersCreated, func(r *Run) {
		rs := r.replicaSet("x", 2)
		r.Made(rs)
		_ = r.GetSub("scale", rs, &autoscalingv1.Scale{})
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
		_ = r.GetSub("scale", rs, u)
		_ = r.GetSub("scale", r.replicaSet("no", 1), &autoscalingv1.Scale{})
	}},
	{"scale/update", answersCreated, func(r *Run) {
		rs := r.replicaSet("x", 2)
		r.Made(rs)
		scale := &autoscalingv1.Scale{}
		_ = r.GetSub("scale", rs, scale)
		scale.Spec.Replicas = 5
		r.Hide("metadata.managedFields")
		_ = r.UpdateSub("scale", rs, scale)
		_ = r.Get(rs)
		scale.ResourceVersion = "1"
		_ = r.UpdateSub("scale", rs, scale)
		scale.ResourceVersion = ""
		scale.Spec.Replicas = 6
		_ = r.UpdateSub("scale", rs, scale)
	}},
	{"scale/patch", answersCreated, func(r *Run) {
		rs := r.replicaSet("x", 2)
		r.Made(rs)
		r.Hide("metadata.managedFields")
		scale := &autoscalingv1.Scale{}
		err := r.C.SubResource("scale").Patch(r.ctx, rs, merge(`{"spec":{"replicas":7}}`), client.WithSubResourceBody(scale))
		_ = r.note("patch scale", err, scale)
		_ = r.Get(rs)
	}},
	{"scale/of a kind without", 0, func(r *Run) {
		c := r.configMap("a", "x")
		r.Made(c)
		_ = r.GetSub("scale", c, &autoscalingv1.Scale{})
	}},
	{"token", answersCreated, func(r *Run) {
		sa := &corev1.ServiceAccount{ObjectMeta: r.meta("a", "robot")}
		request := &authenticationv1.TokenRequest{}
		_ = r.CreateSub("token", sa, request)
		r.Made(sa)
		err := r.C.SubResource("token").Create(r.ctx, sa, request)
		r.Say("failed", err != nil)
		r.Say("has a token", request.Status.Token != "")
		r.Say("has an end", !request.Status.ExpirationTimestamp.IsZero())
	}},
	{"status/get", answersCreated, func(r *Run) {
		w := r.widget("a", "x")
		r.Made(w)
		r.Hide("metadata.managedFields")
		into := NewWidget()
		_ = r.GetSub("status", w, into)
	}},
	{"eviction/absent", 0, func(r *Run) {
		p := &corev1.Pod{ObjectMeta: r.meta("a", "no")}
		_ = r.CreateSub("eviction", p, eviction(p))
	}},
	{"eviction/nameless", 0, func(r *Run) {
		_ = r.CreateSub("eviction", &corev1.Pod{ObjectMeta: r.meta("a", "no")}, &policyv1.Eviction{})
		_ = r.CreateSub("binding", &corev1.Pod{ObjectMeta: r.meta("a", "no")}, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n"}})
	}},
	{"eviction/of another", 0, func(r *Run) {
		one, other := &corev1.Pod{ObjectMeta: r.meta("a", "no")}, &corev1.Pod{ObjectMeta: r.meta("a", "other")}
		_ = r.CreateSub("eviction", one, eviction(other))
		_ = r.CreateSub("binding", one, binding(other, "n"))
	}},
}
