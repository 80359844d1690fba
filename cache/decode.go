// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// itemList is the list of any kind, decoded without the Go type of that list.
type itemList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject copies the list and its items.
func (l *itemList) DeepCopyObject() runtime.Object {
	out := &itemList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for _, item := range l.Items {
		out.Items = append(out.Items, item.DeepCopyObject())
	}
	return out
}

// maker returns a function that makes empty objects of example's Go type.
func maker(example runtime.Object) func() runtime.Object {
	typ := reflect.TypeOf(example).Elem()
	return func() runtime.Object { return reflect.New(typ).Interface().(runtime.Object) }
}

// isProtobuf reports whether a Content-Type header tells of protobuf.
func isProtobuf(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == runtime.ContentTypeProtobuf
}

// decodeList decodes the body of a list.
func decodeList(body []byte, contentType string, item func() runtime.Object) (*itemList, error) {
	if isProtobuf(contentType) {
		return decodeProtobufList(body, item)
	}
	var raw struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta   `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := utiljson.Unmarshal(body, &raw); err != nil {
		return nil, fmt.Errorf("decode a list: %w", err)
	}
	if raw.Kind == "Status" {
		return nil, errors.New("decode a list: the server answered with a Status")
	}
	list := &itemList{ListMeta: raw.Metadata, Items: make([]runtime.Object, 0, len(raw.Items))}
	for _, data := range raw.Items {
		obj := item()
		if err := decodeJSON(data, obj); err != nil {
			return nil, fmt.Errorf("decode an item of a list: %w", err)
		}
		list.Items = append(list.Items, obj)
	}
	return list, nil
}

func decodeJSON(data []byte, into runtime.Object) error {
	if apiutil.FormOf(into) == apiutil.Unstructured {
		u := into.(*unstructured.Unstructured)
		gvk := u.GroupVersionKind()
		u.Object = nil
		if err := utiljson.Unmarshal(data, &u.Object); err != nil {
			return err
		}
		if u.GetKind() == "" { // items of a built-in list do not say what they are
			u.SetGroupVersionKind(gvk)
		}
		return nil
	}
	return utiljson.Unmarshal(data, into)
}

// decodeObject decodes the body of one whole object.
func decodeObject(body []byte, contentType string, into runtime.Object) error {
	if !isProtobuf(contentType) {
		return decodeJSON(body, into)
	}
	raw, err := protobufPayload(body)
	if err != nil {
		return err
	}
	return unmarshalProtobuf(raw, into)
}

func unmarshalProtobuf(raw []byte, into runtime.Object) error {
	m, ok := into.(interface{ Unmarshal([]byte) error })
	if !ok {
		return fmt.Errorf("the server answered in protobuf, which %T does not read", into)
	}
	return m.Unmarshal(raw)
}

// protobufMagic begins every object that Kubernetes sends as protobuf.
var protobufMagic = []byte("k8s\x00")

// protobufPayload takes an object out of its envelope.
func protobufPayload(body []byte) ([]byte, error) {
	data, ok := bytes.CutPrefix(body, protobufMagic)
	if !ok {
		return nil, errors.New("the body is no protobuf of Kubernetes")
	}
	var unknown runtime.Unknown
	if err := unknown.Unmarshal(data); err != nil {
		return nil, err
	}
	if unknown.Kind == "Status" {
		return nil, errors.New("the server answered with a Status")
	}
	return unknown.Raw, nil
}

// decodeProtobufList reads the two fields that all list messages have: metadata is 1, items are 2.
func decodeProtobufList(body []byte, item func() runtime.Object) (*itemList, error) {
	raw, err := protobufPayload(body)
	if err != nil {
		return nil, fmt.Errorf("decode a list: %w", err)
	}
	list := &itemList{}
	for len(raw) > 0 {
		field, value, rest, err := protobufField(raw)
		if err != nil {
			return nil, fmt.Errorf("decode a list: %w", err)
		}
		raw = rest
		switch field {
		case 1:
			err = list.ListMeta.Unmarshal(value)
		case 2:
			obj := item()
			err = unmarshalProtobuf(value, obj)
			list.Items = append(list.Items, obj)
		}
		if err != nil {
			return nil, fmt.Errorf("decode a list: %w", err)
		}
	}
	return list, nil
}

var errProtobuf = errors.New("broken protobuf message")

// protobufField takes the first field off a message. Only the wire types that messages of Kubernetes have at
// the top are read; value is empty for numbers.
func protobufField(data []byte) (field uint64, value, rest []byte, err error) {
	tag, n := binary.Uvarint(data)
	if n <= 0 {
		return 0, nil, nil, errProtobuf
	}
	data = data[n:]
	number, n := binary.Uvarint(data)
	if n <= 0 {
		return 0, nil, nil, errProtobuf
	}
	switch tag & 7 {
	case 0:
		return tag >> 3, nil, data[n:], nil
	case 2:
		if number > uint64(len(data)-n) {
			return 0, nil, nil, errProtobuf
		}
		end := n + int(number)
		return tag >> 3, data[n:end], data[end:], nil
	}
	return 0, nil, nil, errProtobuf
}
