// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/controller/event"
)

// The predicates below judge updates by what changed. All other events pass,
// unless the embedded functions say otherwise; UpdateFunc of those is not
// asked. An update without both objects does not pass.
type (
	// ResourceVersionChangedPredicate drops resyncs.
	ResourceVersionChangedPredicate = TypedResourceVersionChangedPredicate[client.Object]

	// GenerationChangedPredicate drops updates that left metadata.generation
	// as it was: those of status and metadata, and resyncs. It suits kinds
	// whose generation the server raises with the spec, so every custom
	// resource, and Deployments, but for example neither Services nor
	// ConfigMaps.
	GenerationChangedPredicate = TypedGenerationChangedPredicate[client.Object]

	// AnnotationChangedPredicate drops updates that left the annotations as
	// they were.
	AnnotationChangedPredicate = TypedAnnotationChangedPredicate[client.Object]

	// LabelChangedPredicate drops updates that left the labels as they were.
	LabelChangedPredicate = TypedLabelChangedPredicate[client.Object]
)

// TypedResourceVersionChangedPredicate is ResourceVersionChangedPredicate for
// one type.
type TypedResourceVersionChangedPredicate[object metav1.Object] struct {
	TypedFuncs[object]
}

// Update tells whether the resourceVersion changed.
func (TypedResourceVersionChangedPredicate[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return complete(e) && e.ObjectNew.GetResourceVersion() != e.ObjectOld.GetResourceVersion()
}

// TypedGenerationChangedPredicate is GenerationChangedPredicate for one type.
type TypedGenerationChangedPredicate[object metav1.Object] struct {
	TypedFuncs[object]
}

// Update tells whether the generation changed.
func (TypedGenerationChangedPredicate[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return complete(e) && e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration()
}

// TypedAnnotationChangedPredicate is AnnotationChangedPredicate for one type.
type TypedAnnotationChangedPredicate[object metav1.Object] struct {
	TypedFuncs[object]
}

// Update tells whether the annotations changed. No annotations and an empty
// map are the same.
func (TypedAnnotationChangedPredicate[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return complete(e) && !maps.Equal(e.ObjectNew.GetAnnotations(), e.ObjectOld.GetAnnotations())
}

// TypedLabelChangedPredicate is LabelChangedPredicate for one type.
type TypedLabelChangedPredicate[object metav1.Object] struct {
	TypedFuncs[object]
}

// Update tells whether the labels changed. No labels and an empty map are the
// same.
func (TypedLabelChangedPredicate[object]) Update(e event.TypedUpdateEvent[object]) bool {
	return complete(e) && !maps.Equal(e.ObjectNew.GetLabels(), e.ObjectOld.GetLabels())
}

// complete tells whether an update has both objects. A source of ours always
// sets them; others may not.
func complete[object metav1.Object](e event.TypedUpdateEvent[object]) bool {
	return !apiutil.IsNil(e.ObjectOld) && !apiutil.IsNil(e.ObjectNew)
}
