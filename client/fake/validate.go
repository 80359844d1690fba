// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/wherry-dev/wherry/client"
)

// validate checks the metadata of a new object as the server does.
func (e *engine) validate(k *kind, obj client.Object) error {
	if !e.behaviour.has(Validation) {
		return nil
	}
	return k.invalidUnless(obj, e.check(k, obj))
}

// validateUpdate checks the metadata of an object that replaces was.
func (e *engine) validateUpdate(k *kind, was, obj client.Object) error {
	if !e.behaviour.has(Validation) {
		return nil
	}
	managed := obj.GetManagedFields()
	obj.SetManagedFields(nil)
	defer obj.SetManagedFields(managed)
	return k.invalidUnless(obj, append(e.check(k, obj), validation.ValidateObjectMetaAccessorUpdate(obj, was, field.NewPath("metadata"))...))
}

// check leaves managedFields out: what the caller sent of them is not what will be stored.
func (e *engine) check(k *kind, obj client.Object) field.ErrorList {
	managed := obj.GetManagedFields()
	obj.SetManagedFields(nil)
	defer obj.SetManagedFields(managed)
	return validation.ValidateObjectMetaAccessor(obj, obj.GetNamespace() != "", nameRule(k), field.NewPath("metadata"))
}

func (k *kind) invalidUnless(obj client.Object, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(k.gvk.GroupKind(), obj.GetName(), errs)
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
