// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherry-dev/wherry/client"
)

// validate checks metadata as the server does.
func (e *engine) validate(k *kind, obj client.Object) error {
	if !e.behaviour.has(Validation) {
		return nil
	}
	errs := validation.ValidateObjectMetaAccessor(obj, k.namespaced() && obj.GetNamespace() != "", nameRule(k), field.NewPath("metadata"))
	if len(errs) > 0 {
		return apierrors.NewInvalid(k.gvk.GroupKind(), obj.GetName(), errs)
	}
	return nil
}

// nameRule gives the rule that names of a kind must follow: most are DNS subdomains.
func nameRule(k *kind) validation.ValidateNameFunc {
	switch k.gvk.GroupKind().String() {
	case "Namespace":
		return validation.ValidateNamespaceName
	case "Service":
		return validation.NameIsDNS1035Label
	case "ServiceAccount":
		return validation.ValidateServiceAccountName
	}
	if k.gvk.Group == "rbac.authorization.k8s.io" {
		return path.ValidatePathSegmentName
	}
	return validation.NameIsDNSSubdomain
}

// admit refuses what must not be created in the namespace it names.
func (e *engine) admit(k *kind, obj client.Object) error {
	if !e.behaviour.has(Namespaces) || !k.namespaced() {
		return nil
	}
	ns := obj.GetNamespace()
	if ns == "" {
		return badRequestf("an empty namespace may not be set during creation")
	}
	home := e.of(corev1.SchemeGroupVersion.WithKind("Namespace"))
	r, err := e.rows.get(home, types.NamespacedName{Name: ns})
	if err != nil {
		return err
	}
	if r == nil {
		return home.notFound(ns)
	}
	if r.obj.GetDeletionTimestamp() == nil && phaseOf(r.obj) != string(corev1.NamespaceTerminating) {
		return nil
	}
	refused := apierrors.NewForbidden(k.resource(), obj.GetName(), errors.New("unable to create new content in namespace "+ns+" because it is being terminated"))
	refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: "namespace " + ns + " is being terminated", Field: "metadata.namespace",
	})
	return refused
}

func phaseOf(obj client.Object) string {
	switch o := obj.(type) {
	case *corev1.Namespace:
		return string(o.Status.Phase)
	case *unstructured.Unstructured:
		phase, _, _ := unstructured.NestedString(o.Object, statusField, "phase")
		return phase
	}
	return ""
}
