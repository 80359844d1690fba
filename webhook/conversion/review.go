// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// reviewGroup is the API group of conversion reviews. Their Go types are in a module that this one does not need otherwise.
const reviewGroup = "apiextensions.k8s.io"

// conversionReview is a review of the versions v1 and v1beta1: they have one shape.
type conversionReview struct {
	metav1.TypeMeta `json:",inline"`

	Request  *conversionRequest  `json:"request,omitempty"`
	Response *conversionResponse `json:"response,omitempty"`
}

type conversionRequest struct {
	UID               types.UID              `json:"uid"`
	DesiredAPIVersion string                 `json:"desiredAPIVersion"`
	Objects           []runtime.RawExtension `json:"objects"`
}

type conversionResponse struct {
	UID              types.UID              `json:"uid"`
	ConvertedObjects []runtime.RawExtension `json:"convertedObjects"`
	Result           metav1.Status          `json:"result"`
}
