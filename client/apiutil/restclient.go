// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

var (
	protobufLock sync.RWMutex
	// protobufScheme holds what AddToProtobufScheme added; k8s.io/api is known by the table.
	protobufScheme = runtime.NewScheme()
)

// AddToProtobufScheme tells that the kinds which add registers may be sent and read as protobuf: the server must speak it
// for them and their Go types must implement it. All kinds of k8s.io/api are known already. It may be called at any time
// and holds for requests that begin afterwards.
func AddToProtobufScheme(add func(*runtime.Scheme) error) error {
	protobufLock.Lock()
	defer protobufLock.Unlock()
	return add(protobufScheme)
}

// SpeaksProtobuf reports whether a kind may be sent and read as protobuf.
func SpeaksProtobuf(kind schema.GroupVersionKind) bool {
	if isAPIVersion(kind.GroupVersion()) {
		return true
	}
	protobufLock.RLock()
	defer protobufLock.RUnlock()
	return protobufScheme.Recognizes(kind)
}

// RESTClientForGVK makes a client for the group and version of a kind.
//
// It speaks protobuf for kinds of k8s.io/api and those given to AddToProtobufScheme, unless forceDisableProtoBuf is set,
// isUnstructured is set or config asks for a content type, and JSON for all others. Objects are decoded without conversion,
// into a target that was zeroed first; with isUnstructured they are decoded as unstructured objects, else as codecs' scheme
// tells.
//
// config is copied, not kept. A nil httpClient is an error.
func RESTClientForGVK(
	kind schema.GroupVersionKind,
	forceDisableProtoBuf bool,
	isUnstructured bool,
	config *rest.Config,
	codecs serializer.CodecFactory,
	httpClient *http.Client,
) (rest.Interface, error) {
	if config == nil || httpClient == nil {
		return nil, fmt.Errorf("make a REST client for %s: config and httpClient must not be nil", kind)
	}
	cfg := rest.CopyConfig(config)
	cfg.APIPath, cfg.GroupVersion = apiPath(kind.Group), &schema.GroupVersion{Group: kind.Group, Version: kind.Version}
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	switch {
	case isUnstructured:
		cfg.ContentType, cfg.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		cfg.NegotiatedSerializer = treeSerializer{metaScheme()}
	default:
		if cfg.ContentType == "" && !forceDisableProtoBuf && SpeaksProtobuf(kind) {
			cfg.ContentType = runtime.ContentTypeProtobuf
		}
		cfg.NegotiatedSerializer = zeroingSerializer{serializer.WithoutConversionCodecFactory{CodecFactory: codecs}}
	}
	return rest.RESTClientForConfigAndClient(cfg, httpClient)
}

// apiPath gives the first part of the URL path of a group.
func apiPath(group string) string {
	if group == "" {
		return "/api"
	}
	return "/apis"
}

// zeroingSerializer zeroes the target of a decoder before it is filled, so that no field of an earlier answer survives.
type zeroingSerializer struct{ runtime.NegotiatedSerializer }

func (s zeroingSerializer) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return zeroingDecoder{s.NegotiatedSerializer.DecoderToVersion(d, gv)}
}

type zeroingDecoder struct{ runtime.Decoder }

func (d zeroingDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	Zero(into)
	return d.Decoder.Decode(data, defaults, into)
}

// Zero sets the value that a pointer points to back to its type's zero value. Anything that is no pointer is left alone.
func Zero(obj any) {
	if obj == nil {
		return
	}
	if v := reflect.ValueOf(obj); v.Kind() == reflect.Pointer && !v.IsNil() {
		v.Elem().SetZero()
	}
}
