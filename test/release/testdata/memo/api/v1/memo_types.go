package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemoSpec is what a user wants noted.
type MemoSpec struct {
	// Text is the memo itself.
	Text string `json:"text"`
	// Title stands above the text; the memo's name if it is not set.
	// +optional
	Title string `json:"title,omitempty"`
}

// MemoStatus is what the controller found.
type MemoStatus struct {
	// Conditions has Ready once the memo is written down.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status

// Memo is a short text that ends up in a ConfigMap.
type Memo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MemoSpec   `json:"spec"`
	Status MemoStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// MemoList is a list of memos.
type MemoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memo `json:"items"`
}

func init() {
	SchemeBuilder.Register(&Memo{}, &MemoList{})
}
