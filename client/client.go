// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// Options are the options of New. The zero value makes a client that reads and writes live.
type Options struct {
	// HTTPClient sends the requests. Nil means one made of the config.
	HTTPClient *http.Client

	// Scheme tells the kinds of typed objects. Nil means apiutil.DefaultScheme.
	Scheme *runtime.Scheme

	// Mapper tells which resource serves a kind. Nil means apiutil.NewDynamicRESTMapper.
	Mapper meta.RESTMapper

	// Cache says which reads go to a cache. Nil means none.
	Cache *CacheOptions

	// DryRun makes every write a dry run if it is true.
	DryRun *bool

	// FieldOwner is the field manager of all writes that name none.
	FieldOwner string

	// FieldValidation is that of all writes that name none: Ignore, Warn or Strict. Empty means the server's default.
	FieldValidation string

	// Log is where warnings of the API server go, unless the config has a handler for them. The zero value means the logger
	// of the context of each call.
	Log logr.Logger

	// Gates hear of every write: see WriteGate.
	Gates []WriteGate
}

// CacheOptions say which reads go to a cache.
type CacheOptions struct {
	// Reader is the cache. The caller starts it, waits until it is filled and stops it. Nil means that all reads are live.
	Reader Reader

	// DisableFor names kinds that are read live nevertheless. Only the kind of each object is used.
	DisableFor []Object

	// Unstructured sends reads of unstructured objects to the cache too. Off, they are live.
	Unstructured bool

	// EnableReadYourWritesConsistency makes cached reads take account of the client's own writes before the cache has
	// heard of them. It needs a Reader that implements WriteGate. Nil means off; a manager switches it on.
	EnableReadYourWritesConsistency *bool
}

// NewClientFunc makes a client; managers take one.
type NewClientFunc func(config *rest.Config, options Options) (Client, error)

// KindReader is a Reader that hands out readers of one kind. A client whose CacheOptions.Reader has it asks once for each
// Go type, so that neither resolves a kind again for a type that it has read.
type KindReader interface {
	Reader
	// OfKind returns what reads objects of a kind, and lists of them, in one form. It does not block and is good for as
	// long as the reader is.
	OfKind(kind schema.GroupVersionKind, form apiutil.Form) Reader
}

// New makes a client of the API server that config tells. It sends nothing. config and options are copied; the caller
// keeps the HTTP client, and the cache, which outlives the client.
func New(config *rest.Config, options Options) (Client, error) {
	_, c, err := newClient(config, options)
	if err != nil {
		return nil, err
	}
	return wrapClient(c, options), nil
}

// NewWithWatch is New for a client that can also watch. Watches are always live.
func NewWithWatch(config *rest.Config, options Options) (WithWatch, error) {
	_, c, err := newClient(config, options)
	if err != nil {
		return nil, err
	}
	return wrapClient(c, options), nil
}

// client reads and writes in all three forms. What the forms do not share is one row each: typedClient,
// unstructuredClient and metadataClient.
type client struct {
	typedClient        typedClient
	unstructuredClient unstructuredClient
	metadataClient     metadataClient
	scheme             *runtime.Scheme
	mapper             meta.RESTMapper

	cache             Reader
	uncachedGVKs      map[schema.GroupVersionKind]struct{}
	cacheUnstructured bool

	// cacheOfKind is cache if it hands out readers of one kind, else nil. bound remembers those.
	cacheOfKind KindReader
	bound       readerTable
}

var _ WithWatch = (*client)(nil)

// newClient makes the client and returns it twice: as itself, and as what the layers of wrapClient are put around.
func newClient(config *rest.Config, options Options) (*client, WithWatch, error) {
	path, options, err := newRequestPath(config, options)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client: %w", err)
	}
	c := &client{
		typedClient:        typedClient{formClient{apiutil.Typed, path}},
		unstructuredClient: unstructuredClient{formClient{apiutil.Unstructured, path}},
		metadataClient:     metadataClient{formClient{apiutil.Metadata, path}},
		scheme:             options.Scheme,
		mapper:             options.Mapper,
	}
	if options.Cache == nil || options.Cache.Reader == nil {
		return c, c, nil
	}
	c.cache = options.Cache.Reader
	c.cacheOfKind, _ = c.cache.(KindReader)
	c.cacheUnstructured = options.Cache.Unstructured
	c.uncachedGVKs = make(map[schema.GroupVersionKind]struct{}, len(options.Cache.DisableFor))
	for _, obj := range options.Cache.DisableFor {
		kind, err := c.GroupVersionKindFor(obj)
		if err != nil {
			return nil, nil, fmt.Errorf("make a client: CacheOptions.DisableFor: %w", err)
		}
		c.uncachedGVKs[kind] = struct{}{}
	}
	if on := options.Cache.EnableReadYourWritesConsistency; on != nil && *on {
		gate, ok := c.cache.(WriteGate)
		if !ok {
			return nil, nil, fmt.Errorf("make a client: EnableReadYourWritesConsistency needs a cache that implements WriteGate, %T does not", c.cache)
		}
		path.gates = append(path.gates, gate)
	}
	return c, c, nil
}

// newRequestPath fills in the defaults of options and makes what all forms share.
func newRequestPath(config *rest.Config, options Options) (*requestPath, Options, error) {
	if config == nil {
		return nil, options, errors.New("the config must not be nil, see package client/config")
	}
	config = rest.CopyConfig(config)
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	var err error
	if options.HTTPClient == nil {
		if options.HTTPClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, options, err
		}
	}
	if options.Scheme == nil {
		options.Scheme = apiutil.DefaultScheme()
	}
	if options.Mapper == nil {
		if options.Mapper, err = apiutil.NewDynamicRESTMapper(config, options.HTTPClient); err != nil {
			return nil, options, err
		}
	}
	transport, err := newTransport(config, options.HTTPClient)
	if err != nil {
		return nil, options, err
	}
	if options.Log.GetSink() != nil {
		transport.warn = loggedWarnings{transport.warn, options.Log}
	}
	config.GroupVersion, config.APIPath, config.WarningHandlerWithContext = &schema.GroupVersion{}, "", transport.warn
	watcher := watcher{config: config, httpClient: options.HTTPClient, scheme: options.Scheme}
	return &requestPath{
		transport: transport,
		resources: &resources{mapper: options.Mapper, newLimiter: transport.newLimiter},
		gates:     append(gates(nil), options.Gates...),
		plain:     watcher.plain(),
		watcher:   watcher,
	}, options, nil
}

// shouldBypassCache reports whether a read of obj, an object or list, is live.
func (c *client) shouldBypassCache(obj runtime.Object) (bool, error) {
	if c.cache == nil {
		return true, nil
	}
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return false, err
	}
	if meta.IsListType(obj) {
		kind = apiutil.ItemKind(kind)
	}
	return c.bypassesCache(kind, apiutil.FormOf(obj)), nil
}

// bypassesCache is shouldBypassCache for a kind that is resolved: that of the items, for a list.
func (c *client) bypassesCache(item schema.GroupVersionKind, form apiutil.Form) bool {
	if c.cache == nil {
		return true
	}
	if _, uncached := c.uncachedGVKs[item]; uncached {
		return true
	}
	return form == apiutil.Unstructured && !c.cacheUnstructured
}

// pick resolves the kind of an object or list, once per call, and the client of its form. Errors are those of
// apiutil.GVKForObject as they are: runtime.IsNotRegisteredError and its like look at an error itself, not at what it wraps.
func (c *client) pick(obj runtime.Object) (*formClient, schema.GroupVersionKind, error) {
	kind, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return nil, kind, err
	}
	return c.form(apiutil.FormOf(obj)), kind, nil
}

func (c *client) form(form apiutil.Form) *formClient {
	return [apiutil.Forms]*formClient{
		apiutil.Typed:        &c.typedClient.formClient,
		apiutil.Unstructured: &c.unstructuredClient.formClient,
		apiutil.Metadata:     &c.metadataClient.formClient,
	}[form]
}

// bind returns what reads objects or lists of obj's Go type from the cache. item is the kind of the object or items.
func (c *client) bind(obj runtime.Object, item schema.GroupVersionKind, form apiutil.Form) Reader {
	if c.cacheOfKind == nil {
		return c.cache
	}
	r := c.cacheOfKind.OfKind(item, form)
	if apiutil.TypeTellsKind(obj, c.scheme) {
		c.bound.remember(obj, r)
	}
	return r
}

// Scheme returns the client's scheme.
func (c *client) Scheme() *runtime.Scheme { return c.scheme }

// RESTMapper returns the client's mapper.
func (c *client) RESTMapper() meta.RESTMapper { return c.mapper }

// GroupVersionKindFor tells the kind of obj.
func (c *client) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.scheme)
}

// IsObjectNamespaced reports whether objects of obj's kind live in a namespace.
func (c *client) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, c.scheme, c.mapper)
}

// Get reads an object, from the cache unless its kind or form bypasses it.
func (c *client) Get(ctx context.Context, key ObjectKey, obj Object, opts ...GetOption) error {
	if r := c.bound.of(obj); r != nil {
		return r.Get(ctx, key, obj, opts...)
	}
	return c.firstGet(ctx, key, obj, opts)
}

// firstGet is Get for an object whose Go type is bound to no reader: not yet, or because its reads are live or the type
// does not tell the kind.
func (c *client) firstGet(ctx context.Context, key ObjectKey, obj Object, opts []GetOption) error {
	form, kind, err := c.pick(obj)
	if err != nil {
		return err
	}
	if c.bypassesCache(kind, form.form) {
		return form.get(ctx, kind, key, obj, opts)
	}
	return c.bind(obj, kind, form.form).Get(ctx, key, obj, opts...)
}

// List reads a list, from the cache unless the kind of its items or its form bypasses it.
func (c *client) List(ctx context.Context, list ObjectList, opts ...ListOption) error {
	if r := c.bound.of(list); r != nil {
		return r.List(ctx, list, opts...)
	}
	form, kind, err := c.pick(list)
	if err != nil {
		return err
	}
	item := apiutil.ItemKind(kind)
	if c.bypassesCache(item, form.form) {
		return form.list(ctx, item, list, opts)
	}
	return c.bind(list, item, form.form).List(ctx, list, opts...)
}

// Status returns a writer of the status sub-resource.
func (c *client) Status() SubResourceWriter { return c.SubResource("status") }

// SubResource returns a client of a sub-resource.
func (c *client) SubResource(subResource string) SubResourceClient {
	return &subResourceClient{client: c, name: strings.TrimSpace(subResource)}
}
