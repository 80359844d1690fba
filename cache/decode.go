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
	"k8s.io/apimachinery/pkg/types"
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
	if contentType == runtime.ContentTypeProtobuf || contentType == runtime.ContentTypeJSON {
		return contentType == runtime.ContentTypeProtobuf // as servers write it
	}
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

// opened is an object taken out of an answer: what it says it is, a little of its metadata, and its bytes, which are part
// of the answer.
type opened struct {
	metav1.TypeMeta
	glance
	raw      []byte
	protobuf bool
}

// glance is what the metadata of an object tells of who it is and whether it will stay.
type glance struct {
	name    string
	uid     types.UID
	version string
	// ending is set once the object is being deleted; grace and finalizers are what may hold it then.
	ending     bool
	grace      int64 // seconds
	finalizers int
}

// open takes an object out of a body and looks at its metadata. The object itself is neither decoded nor copied.
func open(body []byte, contentType string) (o opened, err error) {
	if !isProtobuf(contentType) {
		return openJSON(body)
	}
	o.protobuf = true
	if o.TypeMeta, o.raw, err = unseal(body); err == nil && o.Kind != "Status" {
		err = o.glance.read(o.raw)
	}
	return o, err
}

func openJSON(body []byte) (opened, error) {
	var in struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Name                       string    `json:"name"`
			UID                        types.UID `json:"uid"`
			ResourceVersion            string    `json:"resourceVersion"`
			DeletionTimestamp          *string   `json:"deletionTimestamp"`
			DeletionGracePeriodSeconds int64     `json:"deletionGracePeriodSeconds"`
			Finalizers                 []string  `json:"finalizers"`
		} `json:"metadata"`
	}
	err := json.Unmarshal(body, &in)
	m := &in.Metadata
	return opened{TypeMeta: in.TypeMeta, raw: body, glance: glance{
		name: m.Name, uid: m.UID, version: m.ResourceVersion,
		ending: m.DeletionTimestamp != nil, grace: m.DeletionGracePeriodSeconds, finalizers: len(m.Finalizers),
	}}, err
}

// decode decodes the whole object.
func (o *opened) decode(into runtime.Object) error {
	if o.protobuf {
		return unmarshalProtobuf(o.raw, into)
	}
	return decodeJSON(o.raw, into)
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

// unseal takes an object or list, and the kind it is, out of the envelope that Kubernetes puts around protobuf: a
// message with the type in field 1 and the object's own bytes in field 2. They are not copied.
func unseal(body []byte) (tm metav1.TypeMeta, raw []byte, err error) {
	data, ok := bytes.CutPrefix(body, protobufMagic)
	if !ok {
		return tm, nil, errors.New("the body is no protobuf of Kubernetes")
	}
	err = eachField(data, func(field uint64, value []byte) error {
		switch field {
		case 1:
			return eachField(value, func(field uint64, value []byte) error {
				switch field {
				case 1:
					tm.APIVersion = string(value)
				case 2:
					tm.Kind = string(value)
				}
				return nil
			})
		case 2:
			raw = value
		case 3: // the encoding of field 2
			if len(value) > 0 {
				return errors.New("the body is protobuf in an encoding that is not known")
			}
		}
		return nil
	})
	return tm, raw, err
}

// read looks at the metadata, which is field 1 of every object.
func (g *glance) read(object []byte) error {
	return eachField(object, func(field uint64, metadata []byte) error {
		if field != 1 {
			return nil
		}
		return eachField(metadata, func(field uint64, value []byte) error {
			switch field {
			case 1:
				g.name = string(value)
			case 5:
				g.uid = types.UID(value)
			case 6:
				g.version = string(value)
			case 9:
				g.ending = true
			case 10:
				seconds, _ := binary.Uvarint(value)
				g.grace = int64(seconds)
			case 14:
				g.finalizers++
			}
			return nil
		})
	})
}

// decodeProtobufList reads the two fields that all list messages have: metadata is 1, items are 2.
func decodeProtobufList(body []byte, item func() runtime.Object) (*itemList, error) {
	tm, raw, err := unseal(body)
	if err == nil && tm.Kind == "Status" {
		err = errors.New("the server answered with a Status")
	}
	if err != nil {
		return nil, fmt.Errorf("decode a list: %w", err)
	}
	list := &itemList{}
	err = eachField(raw, func(field uint64, value []byte) error {
		switch field {
		case 1:
			return list.ListMeta.Unmarshal(value)
		case 2:
			obj := item()
			list.Items = append(list.Items, obj)
			return unmarshalProtobuf(value, obj)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("decode a list: %w", err)
	}
	return list, nil
}

var errProtobuf = errors.New("broken protobuf message")

// eachField hands the fields of a message to do, in their order, until one fails.
func eachField(message []byte, do func(field uint64, value []byte) error) error {
	for len(message) > 0 {
		field, value, rest, err := protobufField(message)
		if err == nil {
			err = do(field, value)
		}
		if err != nil {
			return err
		}
		message = rest
	}
	return nil
}

// protobufField takes the first field off a message. The value of a number is its bytes, a varint's as they are. The
// wire types of groups are none of Kubernetes'.
func protobufField(data []byte) (field uint64, value, rest []byte, err error) {
	tag, n := binary.Uvarint(data)
	if n <= 0 {
		return 0, nil, nil, errProtobuf
	}
	data = data[n:]
	size := 0
	switch tag & 7 {
	case 0:
		if _, size = binary.Uvarint(data); size <= 0 {
			return 0, nil, nil, errProtobuf
		}
	case 1:
		size = 8
	case 2:
		length, n := binary.Uvarint(data)
		if n <= 0 || length > uint64(len(data)-n) {
			return 0, nil, nil, errProtobuf
		}
		data, size = data[n:], int(length)
	case 5:
		size = 4
	default:
		return 0, nil, nil, errProtobuf
	}
	if size > len(data) {
		return 0, nil, nil, errProtobuf
	}
	return tag >> 3, data[:size:size], data[size:], nil
}
