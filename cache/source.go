// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// source lists and watches what one store holds, in one form. It needs the Go type of an item, never that of
// a list.
type source struct {
	form     apiutil.Form
	gvk      schema.GroupVersionKind
	resource string
	// namespace is empty for all namespaces and for kinds without.
	namespace string
	scope     *scope
	rest      rest.Interface
	// item makes an empty object to decode into.
	item func() runtime.Object
	// accept asks for metadata instead of whole objects; empty for the other forms.
	accept string
	// tick tells the time of the cache's writes; asked is when the latest whole state was asked for.
	tick  func() uint64
	asked *atomic.Uint64
	// open is the latest watch.
	open *atomic.Pointer[watch.Interface]
}

// metadataAccept asks for metadata in protobuf, else in JSON; the suffix tells list from object.
const (
	metadataAcceptItem = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," +
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	metadataAcceptList = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," +
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

var (
	optionsScheme = makeOptionsScheme()
	optionsCodec  = runtime.NewParameterCodec(optionsScheme)
	optionsGV     = schema.GroupVersion{Version: "v1"}

	metadataCodecs = serializer.NewCodecFactory(makeMetadataScheme())
)

func makeOptionsScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, optionsGV)
	return s
}

// makeMetadataScheme returns a scheme that decodes metadata and the frames of a watch.
func makeMetadataScheme() *runtime.Scheme {
	s := makeOptionsScheme()
	// AddMetaToScheme can only fail for types without a version, which it does not register.
	if err := metav1.AddMetaToScheme(s); err != nil {
		panic(err)
	}
	return s
}

// newSource makes the source of one store. example is an object of the kind in the form to be stored.
func newSource(c *informerCache, example runtime.Object, form apiutil.Form, gvk schema.GroupVersionKind, mapping *meta.RESTMapping, sc *scope) (*source, error) {
	s := &source{form: form, gvk: gvk, resource: mapping.Resource.Resource, scope: sc, tick: c.tick, asked: &atomic.Uint64{},
		open: &atomic.Pointer[watch.Interface]{}}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		s.namespace = sc.namespace
	}
	codecs := metadataCodecs
	switch form {
	case apiutil.Metadata:
		s.accept = metadataAcceptItem
		s.item = func() runtime.Object { return &metav1.PartialObjectMetadata{} }
	case apiutil.Unstructured:
		s.item = func() runtime.Object {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gvk)
			return u
		}
	default:
		codecs = serializer.NewCodecFactory(apiutil.SchemeFor(example, gvk, c.scheme))
		s.item = maker(example)
	}
	config := c.config
	if form == apiutil.Metadata && config.ContentType == "" {
		config = rest.CopyConfig(config)
		config.ContentType = runtime.ContentTypeProtobuf
	}
	client, err := apiutil.RESTClientForGVK(gvk, false, form == apiutil.Unstructured, config, codecs, c.http)
	if err != nil {
		return nil, err
	}
	s.rest = client
	return s, nil
}

// request prepares a read of the store's scope.
func (s *source) request(opts *metav1.ListOptions) *rest.Request {
	opts.LabelSelector = ""
	if !s.scope.label.Empty() {
		opts.LabelSelector = s.scope.label.String()
	}
	field := s.scope.field
	if opts.FieldSelector != "" { // the name of one object, from a fetch
		field = fields.AndSelectors(field, fields.ParseSelectorOrDie(opts.FieldSelector))
	}
	opts.FieldSelector = ""
	if !field.Empty() {
		opts.FieldSelector = field.String()
	}
	return s.rest.Get().
		NamespaceIfScoped(s.namespace, s.namespace != "").
		Resource(s.resource).
		SpecificallyVersionedParams(opts, optionsCodec, optionsGV)
}

// ListWithContext lists the store's scope. A first list asks for the newest state: with "0" a server may
// answer from a cache that has not seen what this process wrote before the store was made.
func (s *source) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if opts.ResourceVersion == "0" {
		opts.ResourceVersion = ""
	}
	if opts.Continue == "" {
		s.asks(opts.ResourceVersion)
	}
	return s.list(ctx, opts)
}

// asks notes when a whole state was asked for, if it is to be the newest: only that shows all earlier writes.
func (s *source) asks(version string) {
	now := s.tick()
	if version != "" {
		now = 0
	}
	s.asked.Store(now)
}

func (s *source) list(ctx context.Context, opts metav1.ListOptions) (*itemList, error) {
	req := s.request(&opts)
	if s.accept != "" {
		req.SetHeader("Accept", metadataAcceptList)
	}
	res := req.Do(ctx)
	body, err := res.Raw()
	if err != nil {
		return nil, res.Error()
	}
	var contentType string
	res.ContentType(&contentType)
	return decodeList(body, contentType, s.item)
}

// WatchWithContext watches the store's scope.
func (s *source) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	if opts.SendInitialEvents != nil {
		s.asks(opts.ResourceVersion)
	}
	// Streaming the first state does not work without bookmarks: the last of it is one.
	opts.AllowWatchBookmarks = s.scope.bookmarks || opts.SendInitialEvents != nil
	req := s.request(&opts)
	if opts.TimeoutSeconds != nil {
		req.Timeout(time.Duration(*opts.TimeoutSeconds) * time.Second)
	}
	if s.accept != "" {
		req.SetHeader("Accept", s.accept)
	}
	w, err := req.Watch(ctx)
	if err == nil {
		s.open.Store(&w)
	}
	return w, err
}

// closeWatch stops the latest watch. A Reflector leaves it running when the store refuses the first state it
// streamed, and then nobody reads from it any more.
func (s *source) closeWatch() {
	if w := s.open.Swap(nil); w != nil {
		(*w).Stop()
	}
}

// fetch asks the server for one object by name. It is a list, so that also "not there" comes with a version.
func (s *source) fetch(ctx context.Context, namespace, name string) (obj runtime.Object, version string, err error) {
	one := *s
	if s.namespace == "" && namespace != "" {
		one.namespace = namespace
	}
	list, err := one.list(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		return nil, "", err
	}
	for _, item := range list.Items {
		if m, err := meta.Accessor(item); err == nil && m.GetName() == name && m.GetNamespace() == namespace {
			return item, list.ResourceVersion, nil
		}
	}
	return nil, list.ResourceVersion, nil
}

// List and Watch make the source a ListerWatcher; client-go calls the methods with a context.
func (s *source) List(opts metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), opts)
}

// Watch is WatchWithContext without a context.
func (s *source) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), opts)
}
