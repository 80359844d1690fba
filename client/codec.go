// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wherry-dev/wherry/client/apiutil"
)

const (
	jsonType     = runtime.ContentTypeJSON
	protobufType = runtime.ContentTypeProtobuf

	asMetadata     = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetadataList = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// A codec is one row of the table below: what is sent, what is asked for, and how an object is written and an answer read.
type codec struct {
	contentType string // of a body with an object in it
	accept      string // of an answer with an object in it
	acceptList  string // of an answer with a list in it
	encode      func(obj runtime.Object, kind schema.GroupVersionKind) ([]byte, error)
}

var (
	protobufCodec     = &codec{protobufType, protobufType + "," + jsonType, protobufType + "," + jsonType, encodeProtobuf}
	jsonCodec         = &codec{jsonType, jsonType, jsonType, encodeJSON}
	unstructuredCodec = &codec{jsonType, jsonType, jsonType, encodeUnstructured}
	metadataCodec     = &codec{
		contentType: jsonType,
		accept:      protobufType + asMetadata + "," + jsonType + asMetadata + "," + jsonType,
		acceptList:  protobufType + asMetadataList + "," + jsonType + asMetadataList + "," + jsonType,
		encode:      encodeMetadata,
	}
)

// protobufObject is what the generated types of built-in kinds implement.
type protobufObject interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// codecFor picks the codec of an object or list. plain is set if the config asks for something other than protobuf.
func codecFor(obj any, kind schema.GroupVersionKind, plain bool) *codec {
	switch apiutil.FormOf(obj) {
	case apiutil.Unstructured:
		return unstructuredCodec
	case apiutil.Metadata:
		return metadataCodec
	}
	if _, ok := obj.(protobufObject); ok && !plain && apiutil.SpeaksProtobuf(apiutil.ItemKind(kind)) {
		return protobufCodec
	}
	return jsonCodec
}

func encodeProtobuf(obj runtime.Object, kind schema.GroupVersionKind) ([]byte, error) {
	return sealEnvelope(obj.(protobufObject), kind)
}

// encodeJSON writes a typed object with its kind in it. The object itself is not touched: it gets its kind in a shallow copy.
func encodeJSON(obj runtime.Object, kind schema.GroupVersionKind) ([]byte, error) {
	if obj.GetObjectKind().GroupVersionKind() != kind {
		value := reflect.ValueOf(obj).Elem()
		shallow := reflect.New(value.Type())
		shallow.Elem().Set(value)
		obj = shallow.Interface().(runtime.Object)
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
	return json.Marshal(obj)
}

func encodeUnstructured(obj runtime.Object, _ schema.GroupVersionKind) ([]byte, error) {
	return json.Marshal(obj)
}

// errMetadataOnly says why a metadata object cannot be the body of a request.
var errMetadataOnly = errors.New("an object in the metadata form has no content to send: use Patch, or the typed or unstructured form")

func encodeMetadata(runtime.Object, schema.GroupVersionKind) ([]byte, error) {
	return nil, errMetadataOnly
}

// decodeAnswer reads an answer into an object or list that asked for kind. What the target held before is gone. A Status
// in the place of an object leaves the target alone; it is an error if it tells of one.
func decodeAnswer(a answer, into runtime.Object, kind schema.GroupVersionKind) error {
	var opened *envelope
	if isProtobuf(a.body) {
		e, err := openEnvelope(a.body)
		if err != nil {
			return fmt.Errorf("read the server's answer: %w", err)
		}
		opened = &e
	}
	if status := statusIn(a, opened); status != nil && kind != statusKind {
		if status.Status == metav1.StatusSuccess || status.Status == "" {
			return nil
		}
		return &apierrors.StatusError{ErrStatus: *status}
	}
	declared := into.GetObjectKind().GroupVersionKind()
	apiutil.Zero(into)
	var err error
	if opened != nil {
		err = decodeProtobuf(opened.raw, into)
	} else {
		err = decodeJSON(a.body, into)
	}
	if err != nil {
		return fmt.Errorf("read the server's answer as a %T: %w", into, err)
	}
	setKind(into, kind, declared)
	return nil
}

func decodeProtobuf(raw []byte, into runtime.Object) error {
	target, ok := into.(protobufObject)
	if !ok {
		return errors.New("the server answered in protobuf, which the type does not implement")
	}
	makeRoom(into, raw)
	return target.Unmarshal(raw)
}

// tagItems is the field number of the items in every list of Kubernetes, with the wire type.
const tagItems = 2<<3 | 2

// makeRoom gives the items of a list their final capacity: generated code appends them one by one, and items are large.
func makeRoom(list runtime.Object, raw []byte) {
	if !meta.IsListType(list) {
		return
	}
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return
	}
	n := 0
	if eachField(raw, func(tag uint64, _ []byte) error {
		if tag == tagItems {
			n++
		}
		return nil
	}) != nil || n == 0 {
		return // if something is wrong, the decoder will say so
	}
	slice := reflect.ValueOf(items).Elem()
	slice.Set(reflect.MakeSlice(slice.Type(), 0, n))
}

func decodeJSON(body []byte, into runtime.Object) error {
	if apiutil.FormOf(into) == apiutil.Unstructured {
		return apiutil.DecodeUnstructured(body, into)
	}
	return utiljson.Unmarshal(body, into)
}

// setKind gives the target the kind that its form wants: an unstructured object has it from the answer, a metadata object
// the one that was asked for instead of "PartialObjectMetadata", and a typed one what the caller had set.
func setKind(into runtime.Object, kind, declared schema.GroupVersionKind) {
	switch apiutil.FormOf(into) {
	case apiutil.Typed:
		into.GetObjectKind().SetGroupVersionKind(declared)
	case apiutil.Metadata:
		into.GetObjectKind().SetGroupVersionKind(kind)
		if meta.IsListType(into) {
			item := apiutil.ItemKind(kind)
			_ = meta.EachListItem(into, func(obj runtime.Object) error {
				obj.GetObjectKind().SetGroupVersionKind(item)
				return nil
			})
		}
	}
}

// statusKindJSON starts a Status as the API server writes it.
var statusKindJSON = []byte(`{"kind":"Status"`)

var statusKind = schema.GroupVersionKind{Version: "v1", Kind: "Status"}

// statusIn returns the Status that an answer carries, nil if it carries anything else. opened is the answer's envelope if
// it is in protobuf.
func statusIn(a answer, opened *envelope) *metav1.Status {
	status := &metav1.Status{}
	switch {
	case opened != nil:
		if opened.kind != "Status" || opened.apiVersion != "v1" || status.Unmarshal(opened.raw) != nil {
			return nil
		}
		return status
	case a.failed(), bytes.HasPrefix(a.body, statusKindJSON):
		if utiljson.Unmarshal(a.body, status) != nil || status.Kind != "Status" || status.APIVersion != "v1" {
			return nil
		}
		return status
	default:
		return nil
	}
}
