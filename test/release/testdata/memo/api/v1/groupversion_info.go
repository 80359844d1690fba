// Package v1 has the types of the API group notes.example.org.
// +kubebuilder:object:generate=true
// +groupName=notes.example.org
package v1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	// GroupVersion is what the types below are registered under.
	GroupVersion = schema.GroupVersion{Group: "notes.example.org", Version: "v1"}

	// SchemeBuilder collects the types.
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}

	// AddToScheme adds the types to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
