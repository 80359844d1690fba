// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// watcher makes the REST clients of watches: a watch decodes its objects as they come, without a target, so each needs
// decoders for its kind.
type watcher struct {
	config     *rest.Config
	httpClient *http.Client
	scheme     *runtime.Scheme
}

// Watch watches the objects that the options select; it is always live.
func (c *client) Watch(ctx context.Context, list ObjectList, opts ...ListOption) (watch.Interface, error) {
	form, kind, err := c.pick(list)
	if err != nil {
		return nil, err
	}
	return form.watch(ctx, apiutil.ItemKind(kind), list, opts)
}

func (f *formClient) watch(ctx context.Context, item schema.GroupVersionKind, list ObjectList, opts []ListOption) (watch.Interface, error) {
	options := new(ListOptions).ApplyOptions(opts)
	raw := options.AsListOptions()
	raw.Watch = true
	call := f.listCall("watch", item, list, options)
	found, err := f.path.resources.find(ctx, item)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call, err)
	}
	if err := call.check(found); err != nil {
		return nil, fmt.Errorf("%s: %w", call, err)
	}
	call.query = listQuery(raw)
	client, accept, err := f.path.watcher.client(f.form, item, list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call, err)
	}
	call.accept = accept
	request := client.Get().AbsPath(found.path(call)).SetHeader("Accept", call.accept)
	values, err := url.ParseQuery(call.query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call, err)
	}
	for key := range values {
		request.Param(key, values.Get(key))
	}
	events, err := request.Watch(ctx)
	if status := (*apierrors.StatusError)(nil); errors.As(err, &status) {
		return nil, f.path.explain(call, found, status)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", call, err)
	}
	return events, nil
}

// client makes the REST client for a watch of one kind in one form, and says what it accepts.
func (w *watcher) client(form apiutil.Form, item schema.GroupVersionKind, list ObjectList) (rest.Interface, string, error) {
	cfg := rest.CopyConfig(w.config)
	accept := jsonType
	switch form {
	case apiutil.Unstructured:
		client, err := apiutil.RESTClientForGVK(item, true, true, cfg, serializer.CodecFactory{}, w.httpClient)
		return client, accept, err
	case apiutil.Metadata:
		cfg.NegotiatedSerializer = kindSerializer{serializer.NewCodecFactory(newMetadataScheme()).WithoutConversion(), item}
		accept = metadataCodec.accept
	default:
		obj, err := newItem(list)
		if err != nil {
			return nil, "", err
		}
		cfg.NegotiatedSerializer = serializer.NewCodecFactory(apiutil.SchemeFor(obj, item, w.scheme)).WithoutConversion()
		accept = codecFor(obj, item, w.plain()).accept
	}
	client, err := rest.UnversionedRESTClientForConfigAndClient(cfg, w.httpClient)
	return client, accept, err
}

func (w *watcher) plain() bool {
	return w.config.ContentType != "" && w.config.ContentType != protobufType
}

// newItem makes an empty item of a typed list.
func newItem(list ObjectList) (runtime.Object, error) {
	items, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, err
	}
	t := reflect.TypeOf(items).Elem().Elem()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	obj, ok := reflect.New(t).Interface().(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("the items of a %T, of type %s, are no objects", list, t)
	}
	return obj, nil
}

func newMetadataScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	_ = metav1.AddMetaToScheme(s) // fails only if a type is registered twice
	return s
}

// kindSerializer gives decoded metadata objects the kind that was asked for, instead of "PartialObjectMetadata".
type kindSerializer struct {
	runtime.NegotiatedSerializer
	kind schema.GroupVersionKind
}

func (s kindSerializer) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return kindDecoder{s.NegotiatedSerializer.DecoderToVersion(d, gv), s.kind}
}

type kindDecoder struct {
	runtime.Decoder
	kind schema.GroupVersionKind
}

func (d kindDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := d.Decoder.Decode(data, defaults, into)
	if err == nil && apiutil.FormOf(obj) == apiutil.Metadata {
		obj.GetObjectKind().SetGroupVersionKind(d.kind)
	}
	return obj, kind, err
}
