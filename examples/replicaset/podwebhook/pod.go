// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/webhook/admission"
)

// DefaultContainer is the annotation that tells kubectl which container "kubectl logs" and "kubectl exec" mean.
const DefaultContainer = "kubectl.kubernetes.io/default-container"

// Pod completes and judges pods that have a ReplicaSet as their controller. Of other pods it says nothing.
type Pod struct {
	// Reader reads ReplicaSets; a cache will do. What it does not know yet is let through.
	Reader client.Reader
}

// SetupWithManager registers both webhooks, at the paths that Configurations names.
func (p *Pod) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &corev1.Pod{}).WithDefaulter(p).WithValidator(p).Complete()
}

// Default names the first container as the one that kubectl means, unless the pod names one.
func (p *Pod) Default(_ context.Context, pod *corev1.Pod) error {
	if ownerOf(pod) == nil || len(pod.Spec.Containers) == 0 {
		return nil
	}
	if _, named := pod.Annotations[DefaultContainer]; !named {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, DefaultContainer, pod.Spec.Containers[0].Name)
	}
	return nil
}

// ValidateCreate refuses a pod that its ReplicaSet would release at once, and one that would end by itself and be replaced for
// ever.
func (p *Pod) ValidateCreate(ctx context.Context, pod *corev1.Pod) (admission.Warnings, error) {
	owner := ownerOf(pod)
	if owner == nil {
		return nil, nil
	}
	var wrong field.ErrorList
	if policy := pod.Spec.RestartPolicy; policy != "" && policy != corev1.RestartPolicyAlways {
		wrong = append(wrong, field.NotSupported(field.NewPath("spec", "restartPolicy"), policy, []corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	selector, err := p.selectorOf(ctx, pod.Namespace, owner)
	if selector != nil && !selector.Matches(labels.Set(pod.Labels)) {
		wrong = append(wrong, field.Invalid(field.NewPath("metadata", "labels"), labels.FormatLabels(pod.Labels),
			fmt.Sprintf("do not match the selector %q of ReplicaSet %s, which would release the pod at once", selector, owner.Name)))
	}
	if len(wrong) > 0 {
		return unchecked(err), apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), cmp.Or(pod.Name, pod.GenerateName), wrong)
	}
	return unchecked(err), nil
}

// unchecked warns that a pod was not compared with its ReplicaSet. An error would refuse the pod: a failure policy is for webhooks
// that do not answer, and this is our trouble, not the pod's.
func unchecked(err error) admission.Warnings {
	if err == nil {
		return nil
	}
	return admission.Warnings{"not checked: " + err.Error()}
}

// ValidateUpdate warns whoever takes a pod from its ReplicaSet by changing labels. That is a way to look at one in peace, so it is
// allowed.
func (p *Pod) ValidateUpdate(ctx context.Context, before, pod *corev1.Pod) (admission.Warnings, error) {
	owner := ownerOf(pod)
	if owner == nil {
		return nil, nil
	}
	selector, err := p.selectorOf(ctx, pod.Namespace, owner)
	if selector == nil {
		return unchecked(err), nil
	}
	if selector.Matches(labels.Set(before.Labels)) && !selector.Matches(labels.Set(pod.Labels)) {
		return admission.Warnings{fmt.Sprintf("pod %s does not match the selector of ReplicaSet %s any more: it is released, and another takes its place", pod.Name, owner.Name)}, nil
	}
	return nil, nil
}

// ValidateDelete lets every pod go.
func (p *Pod) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

// ownerOf is the reference to the ReplicaSet that controls pod; nil if none does.
func ownerOf(pod *corev1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.APIVersion != appsv1.SchemeGroupVersion.String() || owner.Kind != "ReplicaSet" {
		return nil
	}
	return owner
}

// selectorOf is the selector of the ReplicaSet that owner means; nil if the reader does not know that one, which may be newer
// than what it has seen.
func (p *Pod) selectorOf(ctx context.Context, namespace string, owner *metav1.OwnerReference) (labels.Selector, error) {
	var rs appsv1.ReplicaSet
	err := p.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner.Name}, &rs)
	if apierrors.IsNotFound(err) || err == nil && rs.UID != owner.UID {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ReplicaSet %s/%s: %w", namespace, owner.Name, err)
	}
	return metav1.LabelSelectorAsSelector(rs.Spec.Selector)
}
