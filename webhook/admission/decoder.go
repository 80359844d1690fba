// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// Decoder reads the objects of a request. Safe for concurrent use.
type Decoder interface {
	// Decode reads the object that is to be written. It fails if there is none, as in a DELETE.
	Decode(req Request, into runtime.Object) error

	// DecodeRaw reads rawObj, for instance a request's OldObject. It fails if there is nothing in it, and if it is of a kind
	// that into's Go type is not registered for. What the object does not say is left in into as it is.
	DecodeRaw(rawObj runtime.RawExtension, into runtime.Object) error
}

// NewDecoder returns a decoder for the kinds of scheme. A nil scheme stands for apiutil's default scheme. Unstructured and
// metadata objects can be read of every kind.
func NewDecoder(scheme *runtime.Scheme) Decoder {
	if scheme == nil {
		scheme = apiutil.DefaultScheme()
	}
	return &decoder{scheme: scheme}
}

type decoder struct{ scheme *runtime.Scheme }

func (d *decoder) Decode(req Request, into runtime.Object) error {
	return d.DecodeRaw(req.Object, into)
}

func (d *decoder) DecodeRaw(raw runtime.RawExtension, into runtime.Object) error {
	if len(raw.Raw) == 0 {
		return errors.New("there is no content to decode")
	}
	switch apiutil.FormOf(into) {
	case apiutil.Unstructured:
		var content map[string]any
		if err := json.Unmarshal(raw.Raw, &content); err != nil {
			return fmt.Errorf("decode an unstructured object: %w", err)
		}
		into.(runtime.Unstructured).SetUnstructuredContent(content)
		return nil
	case apiutil.Metadata:
		if err := decode(raw.Raw, into); err != nil {
			return fmt.Errorf("decode an object's metadata: %w", err)
		}
		return nil
	}
	return d.decodeTyped(raw.Raw, into)
}

func (d *decoder) decodeTyped(content []byte, into runtime.Object) error {
	if apiutil.IsNil(into) {
		return fmt.Errorf("decode into a %T: %w", into, apiutil.ErrNilObject)
	}
	if err := decode(content, into); err != nil {
		return fmt.Errorf("decode into a %T: %w", into, err)
	}
	if kind := into.GetObjectKind().GroupVersionKind(); !kind.Empty() {
		return d.mayBe(into, kind)
	}
	return nil
}

// decode reads content by a plan if it can. A plan fills only what is empty.
func decode(content []byte, into runtime.Object) error {
	if v := reflect.ValueOf(into); v.Kind() == reflect.Pointer && !v.IsNil() && v.Elem().IsZero() && decodeByPlan(content, v) {
		return nil
	}
	return json.Unmarshal(content, into)
}

// mayBe says whether into's type is registered for kind.
func (d *decoder) mayBe(into runtime.Object, kind schema.GroupVersionKind) error {
	kinds, _, err := d.scheme.ObjectKinds(into)
	if err != nil { // the default scheme knows kinds that are not registered with it
		own, err := apiutil.GVKForObject(into, d.scheme)
		if err != nil {
			return fmt.Errorf("decode %s: %w", kind, err)
		}
		kinds = []schema.GroupVersionKind{own}
	}
	if !slices.Contains(kinds, kind) {
		return fmt.Errorf("unable to decode %s into %T: that type is a %s", kind, into, kinds[0])
	}
	return nil
}
