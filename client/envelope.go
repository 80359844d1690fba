// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/binary"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An envelope is what Kubernetes puts around an object in protobuf: four bytes, then a runtime.Unknown with the object's
// type and its bytes. It is read and written by hand, so that the object's bytes are not copied on the way.
type envelope struct {
	apiVersion, kind string
	raw              []byte // part of the body it was read from
}

// protobufPrefix starts every protobuf body of Kubernetes.
var protobufPrefix = []byte{'k', '8', 's', 0}

// Field numbers of runtime.Unknown and of the runtime.TypeMeta in it, as tags with their wire type. All fields are
// length-delimited.
const (
	tagTypeMeta        = 1<<3 | 2
	tagRaw             = 2<<3 | 2
	tagContentEncoding = 3<<3 | 2
	tagAPIVersion      = 1<<3 | 2
	tagKind            = 2<<3 | 2
)

var errEnvelope = errors.New("the protobuf envelope is broken")

func isProtobuf(body []byte) bool { return bytes.HasPrefix(body, protobufPrefix) }

// openEnvelope reads the envelope of a body that starts with protobufPrefix.
func openEnvelope(body []byte) (envelope, error) {
	var e envelope
	err := eachField(body[len(protobufPrefix):], func(tag uint64, value []byte) error {
		switch tag {
		case tagTypeMeta:
			return eachField(value, func(tag uint64, value []byte) error {
				switch tag {
				case tagAPIVersion:
					e.apiVersion = string(value)
				case tagKind:
					e.kind = string(value)
				}
				return nil
			})
		case tagRaw:
			e.raw = value
		case tagContentEncoding:
			if len(value) > 0 {
				return errors.New("the protobuf envelope has content in an encoding that is not known")
			}
		}
		return nil
	})
	return e, err
}

// eachField calls do for each length-delimited field of a message; other fields are skipped if they are varints, and an
// error if not: the messages read here have none.
func eachField(message []byte, do func(tag uint64, value []byte) error) error {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return errEnvelope
		}
		size, m := binary.Uvarint(message[n:])
		if m <= 0 {
			return errEnvelope
		}
		message = message[n+m:]
		switch tag & 7 {
		case 0: // a varint: size was its value
			continue
		case 2:
		default:
			return errEnvelope
		}
		if size > uint64(len(message)) {
			return errEnvelope
		}
		if err := do(tag, message[:size:size]); err != nil {
			return err
		}
		message = message[size:]
	}
	return nil
}

// sizedMarshaler is what generated protobuf types offer for writing without a copy.
type sizedMarshaler interface {
	Size() int
	MarshalToSizedBuffer([]byte) (int, error)
}

// sealEnvelope writes an object with an envelope around it.
func sealEnvelope(obj protobufObject, kind schema.GroupVersionKind) ([]byte, error) {
	apiVersion, name := kind.ToAPIVersionAndKind()
	var raw []byte
	var size int
	sized, direct := obj.(sizedMarshaler)
	if direct {
		size = sized.Size()
	} else {
		var err error
		if raw, err = obj.Marshal(); err != nil {
			return nil, err
		}
		size = len(raw)
	}
	typeMeta := 1 + uvarintLen(len(apiVersion)) + len(apiVersion) + 1 + uvarintLen(len(name)) + len(name)
	body := make([]byte, 0, len(protobufPrefix)+1+uvarintLen(typeMeta)+typeMeta+1+uvarintLen(size)+size)
	body = append(body, protobufPrefix...)
	body = binary.AppendUvarint(append(body, tagTypeMeta), uint64(typeMeta))
	body = append(binary.AppendUvarint(append(body, tagAPIVersion), uint64(len(apiVersion))), apiVersion...)
	body = append(binary.AppendUvarint(append(body, tagKind), uint64(len(name))), name...)
	body = binary.AppendUvarint(append(body, tagRaw), uint64(size))
	if !direct {
		return append(body, raw...), nil
	}
	start := len(body)
	body = body[:start+size]
	if _, err := sized.MarshalToSizedBuffer(body[start:]); err != nil {
		return nil, err
	}
	return body, nil
}

func uvarintLen(n int) int {
	length := 1
	for ; n >= 0x80; n >>= 7 {
		length++
	}
	return length
}
