// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

const (
	mutatePath   = "/mutate--v1-pod"
	validatePath = "/validate--v1-pod"
	// timeoutSeconds is how long a write of a pod may wait for us: both webhooks answer from memory.
	timeoutSeconds = 2
)

// Configurations tell an API server when to call the webhooks, which a Service of that name and namespace serves.
//
// Pods are what a cluster lives on, so that nothing here can keep one from being written: if the webhooks do not answer, the pod is
// written without them. The API server asks only about pods that a ReplicaSet controls, which it finds out by itself, and never
// about those in the namespaces that it runs on.
func Configurations(namespace, service string) []client.Object {
	reach := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: service, Path: &path},
		}
	}
	meta := metav1.ObjectMeta{Name: "replicaset-pods"}
	return []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "default.pods.replicaset.example.com",
			ClientConfig:            reach(mutatePath),
			Rules:                   onPods(admissionregistrationv1.Create),
			FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
			NamespaceSelector:       notOfTheSystem(),
			MatchConditions:         ofReplicaSets(),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
			AdmissionReviewVersions: []string{"v1"},
		}}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "validate.pods.replicaset.example.com",
			ClientConfig:            reach(validatePath),
			Rules:                   onPods(admissionregistrationv1.Create, admissionregistrationv1.Update),
			FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
			NamespaceSelector:       notOfTheSystem(),
			MatchConditions:         ofReplicaSets(),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
			AdmissionReviewVersions: []string{"v1"},
		}}},
	}
}

func onPods(operations ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}
}

func notOfTheSystem() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn,
		Values: []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease},
	}}}
}

func ofReplicaSets() []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{
		Name: "controlled-by-a-replicaset",
		Expression: "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, " +
			"o.apiVersion == 'apps/v1' && o.kind == 'ReplicaSet' && has(o.controller) && o.controller)",
	}}
}
