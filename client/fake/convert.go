// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// Stored objects are Go types of the scheme where it knows the kind, else unstructured, and carry their kind. All have been
// through JSON once, so that what a test reads back has the precision and the nils that a server's answer has.

// toStored makes a stored object of obj, which is only read.
func (s *kinds) toStored(k *kind, obj runtime.Object) (client.Object, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return s.decode(k, data)
}

// newStored gives an empty object in stored form.
func (s *kinds) newStored(k *kind) (client.Object, error) {
	if !k.typed {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(k.gvk)
		return u, nil
	}
	made, err := s.scheme.New(k.gvk)
	if err != nil {
		return nil, err
	}
	obj, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%s: %T has no object metadata, so it cannot be stored", k.gvk, made)
	}
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	return obj, nil
}

// decode makes a stored object of a JSON document.
func (s *kinds) decode(k *kind, data []byte) (client.Object, error) {
	obj, err := s.newStored(k)
	if err != nil {
		return nil, err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		err = decodeUntyped(data, u)
	} else {
		err = json.Unmarshal(data, obj)
	}
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	return obj, nil
}

// decodeUntyped takes everything but metadata as it is: that has the same Go type in all kinds.
func decodeUntyped(data []byte, u *unstructured.Unstructured) error {
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return err
	}
	metadata, err := json.Marshal(u.Object["metadata"])
	if err != nil {
		return err
	}
	return json.Unmarshal(metadata, &metav1.ObjectMeta{})
}

// strict reports fields of data that the kind does not have, or that occur twice. Kinds without a Go type have no schema
// here and take everything.
func (s *kinds) strict(k *kind, data []byte) error {
	if !k.typed {
		return nil
	}
	obj, err := s.newStored(k)
	if err != nil {
		return err
	}
	strict := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, s.scheme, s.scheme, serializer.SerializerOptions{Strict: true})
	_, _, err = strict.Decode(data, &k.gvk, obj)
	return err
}

// fill writes a stored object into the caller's, in the caller's form, and leaves nothing of what that held before. Only
// unstructured and metadata objects carry their kind afterwards, as those of a live client.
func (s *kinds) fill(k *kind, stored client.Object, into runtime.Object) error {
	switch apiutil.FormOf(into) {
	case apiutil.Unstructured:
		content, err := toMap(k, stored)
		if err != nil {
			return err
		}
		into.(runtime.Unstructured).SetUnstructuredContent(content)
		return nil
	case apiutil.Metadata:
		*into.(*metav1.PartialObjectMetadata) = *partial(k, stored)
		return nil
	}
	target := reflect.ValueOf(into).Elem()
	if reflect.TypeOf(stored) == reflect.TypeOf(into) {
		target.Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
	} else {
		data, err := json.Marshal(stored)
		if err != nil {
			return err
		}
		target.SetZero()
		if err := json.Unmarshal(data, into); err != nil {
			return err
		}
	}
	into.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return nil
}

// partial gives the metadata of a stored object.
func partial(k *kind, stored client.Object) *metav1.PartialObjectMetadata {
	m := meta.AsPartialObjectMetadata(stored).DeepCopy()
	m.SetGroupVersionKind(k.gvk)
	return m
}

// toMap gives a stored object as the tree of maps that its JSON document is.
func toMap(k *kind, stored client.Object) (map[string]any, error) {
	if u, ok := stored.(*unstructured.Unstructured); ok {
		return u.DeepCopy().Object, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return nil, err
	}
	content["apiVersion"], content["kind"] = k.gvk.ToAPIVersionAndKind()
	return content, nil
}

// statusOf gives the status of a stored object, nil if it has none.
func statusOf(stored client.Object) any {
	if u, ok := stored.(*unstructured.Unstructured); ok {
		return u.Object[statusField]
	}
	if f := statusValue(stored); f.IsValid() {
		return f.Interface()
	}
	return nil
}

const statusField = "status"

// statusValue finds the struct field that is written as status: by its tag, as types may call it something else in Go.
func statusValue(stored client.Object) reflect.Value {
	v := reflect.ValueOf(stored).Elem()
	for i := range v.NumField() {
		if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); tag == statusField {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

// copyStatus gives to the status of from, or none if from is nil. It takes parts of from over without copying them: both
// are ours.
func copyStatus(to, from client.Object) {
	if u, ok := to.(*unstructured.Unstructured); ok {
		delete(u.Object, statusField)
		if from == nil {
			return
		}
		if status, ok := from.(*unstructured.Unstructured).Object[statusField]; ok {
			u.Object[statusField] = runtime.DeepCopyJSONValue(status)
		}
		return
	}
	f := statusValue(to)
	if !f.IsValid() {
		return
	}
	if from == nil {
		f.SetZero()
		return
	}
	f.Set(statusValue(from.DeepCopyObject().(client.Object)))
}
