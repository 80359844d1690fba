// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Builder collects Go types of one group version. It is filled while packages are initialised and is not safe for
// concurrent use before that is over.
type Builder struct {
	// GroupVersion is given to all types registered with the builder. Set it before the first AddToScheme.
	GroupVersion schema.GroupVersion

	runtime.SchemeBuilder
}

// Register adds types: pointers to the zero value of each, list types included. It gives the builder back so that calls
// can be chained.
func (b *Builder) Register(objects ...runtime.Object) *Builder {
	b.SchemeBuilder.Register(func(s *runtime.Scheme) error {
		s.AddKnownTypes(b.GroupVersion, objects...)
		metav1.AddToGroupVersion(s, b.GroupVersion)
		return nil
	})
	return b
}

// RegisterAll adds all that other holds at this moment, under other's group version.
func (b *Builder) RegisterAll(other *Builder) *Builder {
	b.SchemeBuilder = append(b.SchemeBuilder, other.SchemeBuilder...)
	return b
}

// AddToScheme registers everything with s. It panics if s already knows one of the kinds by another Go type.
func (b *Builder) AddToScheme(s *runtime.Scheme) error {
	return b.SchemeBuilder.AddToScheme(s)
}

// Build gives a new scheme with everything registered.
func (b *Builder) Build() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, b.AddToScheme(s)
}
