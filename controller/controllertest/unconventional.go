// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrorType is an object of no kind: whatever needs its kind fails.
type ErrorType struct{}

var _ runtime.Object = ErrorType{}

// GetObjectKind returns nil.
func (ErrorType) GetObjectKind() schema.ObjectKind { return nil }

// DeepCopyObject returns nil.
func (ErrorType) DeepCopyObject() runtime.Object { return nil }

// UnconventionalListType is an API type whose list holds pointers.
type UnconventionalListType struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec string
}

var _ runtime.Object = &UnconventionalListType{}

// DeepCopyObject implements runtime.Object.
func (u *UnconventionalListType) DeepCopyObject() runtime.Object { return u.DeepCopy() }

// DeepCopy copies the object. A copy of nil is nil.
func (u *UnconventionalListType) DeepCopy() *UnconventionalListType {
	if u == nil {
		return nil
	}
	out := *u
	u.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// UnconventionalListTypeList is a list that holds pointers.
type UnconventionalListTypeList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []*UnconventionalListType
}

var _ runtime.Object = &UnconventionalListTypeList{}

// DeepCopyObject implements runtime.Object.
func (u *UnconventionalListTypeList) DeepCopyObject() runtime.Object { return u.DeepCopy() }

// DeepCopy copies the list. A copy of nil is nil.
func (u *UnconventionalListTypeList) DeepCopy() *UnconventionalListTypeList {
	if u == nil {
		return nil
	}
	out := *u
	u.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for _, item := range u.Items {
		out.Items = append(out.Items, item.DeepCopy())
	}
	return &out
}
