// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// Decoder reads objects as they come in conversion requests. Safe for concurrent use.
type Decoder struct{ scheme *runtime.Scheme }

// NewDecoder returns a decoder for the kinds of scheme. A nil scheme stands for apiutil's default scheme.
func NewDecoder(scheme *runtime.Scheme) *Decoder {
	if scheme == nil {
		scheme = apiutil.DefaultScheme()
	}
	return &Decoder{scheme: scheme}
}

// Decode reads an object of the kind that it says it is. The kind is returned also if it is not in the scheme, with an error
// for which runtime.IsNotRegisteredError is true.
func (d *Decoder) Decode(content []byte) (runtime.Object, *schema.GroupVersionKind, error) {
	kind, err := kindOf(content)
	if err != nil {
		return nil, nil, err
	}
	obj, err := d.scheme.New(kind)
	if err != nil {
		return nil, &kind, err
	}
	if err := json.Unmarshal(content, obj); err != nil {
		return nil, &kind, fmt.Errorf("decode a %s: %w", kind, err)
	}
	return obj, &kind, nil
}

// DecodeInto reads an object of into's kind.
func (d *Decoder) DecodeInto(content []byte, into runtime.Object) error {
	kind, err := kindOf(content)
	if err != nil {
		return err
	}
	own, err := apiutil.GVKForObject(into, d.scheme)
	if err != nil {
		return err
	}
	if own != kind {
		return fmt.Errorf("unable to decode %s into %T: that type is a %s", kind, into, own)
	}
	if err := json.Unmarshal(content, into); err != nil {
		return fmt.Errorf("decode a %s: %w", kind, err)
	}
	return nil
}

func kindOf(content []byte) (schema.GroupVersionKind, error) {
	var is metav1.TypeMeta
	if err := json.Unmarshal(content, &is); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("decode an object's kind: %w", err)
	}
	switch kind := is.GroupVersionKind(); {
	case kind.Kind == "":
		return kind, runtime.NewMissingKindErr("an object to convert")
	case kind.Version == "":
		return kind, runtime.NewMissingVersionErr("an object to convert")
	default:
		return kind, nil
	}
}
