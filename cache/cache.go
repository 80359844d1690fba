// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/cache/cacheapi"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/log"
)

// Cache reads objects from memory and gives access to the informers that keep them up to date. All methods may
// be called at once from many goroutines.
type Cache interface {
	// Reader reads from memory. A read of a cache that was not started fails with ErrCacheNotStarted.
	client.Reader

	// Informers keep the cache up to date and tell handlers.
	Informers
}

// The types of package cacheapi, under the names they are used by.
type (
	Informers          = cacheapi.Informers
	Informer           = cacheapi.Informer
	InformerGetOptions = cacheapi.InformerGetOptions
	InformerGetOption  = cacheapi.InformerGetOption
)

// BlockUntilSynced tells whether getting an informer waits until it is filled.
func BlockUntilSynced(shouldBlock bool) InformerGetOption {
	return cacheapi.BlockUntilSynced(shouldBlock)
}

// NewCacheFunc makes a cache.
type NewCacheFunc func(config *rest.Config, opts Options) (Cache, error)

// New makes a cache of the API server that config tells. It sends nothing unless ByObject names namespaces.
// config and opts are copied. The cache is empty until it is started.
func New(config *rest.Config, opts Options) (Cache, error) {
	c, err := newCache(config, opts)
	if err != nil {
		return nil, fmt.Errorf("make a cache: %w", err)
	}
	return c, nil
}

// informerCache is the Cache that New makes: a table of entries, one for each kind and family of forms.
type informerCache struct {
	config            *rest.Config
	http              *http.Client
	scheme            *runtime.Scheme
	mapper            meta.RESTMapper
	settings          *settings
	strict            bool
	watchErrorHandler toolscache.WatchErrorHandlerWithContext
	newInformer       func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer
	stopUnusedAfter   time.Duration
	log               logr.Logger

	kinds kindTable
	clock atomic.Uint64

	mu      sync.Mutex
	entries map[entryKey]*entry
	ctx     context.Context // nil until started
	started chan struct{}
	ended   bool
	work    sync.WaitGroup // entries that are being stopped
}

type entryKey struct {
	gvk    schema.GroupVersionKind
	family family
}

var (
	_ Cache             = (*informerCache)(nil)
	_ client.KindReader = (*informerCache)(nil)
)

func newCache(config *rest.Config, opts Options) (*informerCache, error) {
	if config == nil {
		return nil, errors.New("the config must not be nil")
	}
	c := &informerCache{
		config: rest.CopyConfig(config), http: opts.HTTPClient, scheme: opts.Scheme, mapper: opts.Mapper,
		strict: opts.ReaderFailOnMissingInformer, watchErrorHandler: opts.DefaultWatchErrorHandler,
		newInformer: opts.NewInformer, stopUnusedAfter: opts.StopUnusedInformersAfter, log: log.Log.WithName("cache"),
		entries: map[entryKey]*entry{}, started: make(chan struct{}),
	}
	c.kinds.cache = c
	if c.config.UserAgent == "" {
		c.config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	var err error
	if c.http == nil {
		if c.http, err = rest.HTTPClientFor(c.config); err != nil {
			return nil, err
		}
	}
	if c.scheme == nil {
		c.scheme = apiutil.DefaultScheme()
	}
	if c.mapper == nil {
		if c.mapper, err = apiutil.NewDynamicRESTMapper(c.config, c.http); err != nil {
			return nil, err
		}
	}
	if c.settings, err = settle(&opts, c.scheme); err != nil {
		return nil, err
	}
	if err := c.settings.check(c.mapper); err != nil {
		return nil, err
	}
	return c, nil
}

// tick returns a number above all it returned before.
func (c *informerCache) tick() uint64 { return c.clock.Add(1) }

// jitter spreads waits, so that many kinds that failed at once are not tried again at once.
func (c *informerCache) jitter(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*0.5*float64(d))
}

// spread varies a resync period by 10 % either way.
func (c *informerCache) spread(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}

func (c *informerCache) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// Get reads the object with the given key into obj.
func (c *informerCache) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	k, err := c.kinds.ofObject(obj)
	if err != nil {
		return err
	}
	return k.Get(ctx, key, obj, opts...)
}

// OfKind returns what reads a kind in one form.
func (c *informerCache) OfKind(gvk schema.GroupVersionKind, form apiutil.Form) client.Reader {
	return c.kinds.named(gvk, form)
}

// Get reads the object with the given key into obj.
func (k *kind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	s := k.live()
	if s == nil {
		var err error
		if s, err = k.await(ctx, key.Namespace, obj); err != nil {
			return err
		}
	}
	p := s.partFor(key.Namespace)
	if p == nil {
		return unknownNamespace(k.gvk, key.Namespace, s.known())
	}
	return p.get(ctx, key, obj, opts)
}

// await waits for what a Get in a namespace needs.
func (k *kind) await(ctx context.Context, namespace string, obj client.Object) (*set, error) {
	return k.cache.await(ctx, k, need{example: obj, form: k.form, namespace: namespace})
}

// List reads the objects that opts select into list.
func (c *informerCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	k, err := c.kinds.ofList(list)
	if err != nil {
		return err
	}
	return k.List(ctx, list, opts...)
}

// List reads the objects that opts select into list.
func (k *kind) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	c := k.cache
	var o client.ListOptions
	o.ApplyOptions(opts)
	s := k.live()
	if s == nil {
		example, err := itemOf(list, k.gvk, c.scheme)
		if err != nil {
			return err
		}
		if s, err = c.await(ctx, k, need{example: example, form: k.form, namespace: o.Namespace, all: o.Namespace == ""}); err != nil {
			return err
		}
	}
	return s.list(ctx, list, &o)
}

// await returns a set that serves a read, made and filled if need be.
func (c *informerCache) await(ctx context.Context, k *kind, n need) (*set, error) {
	for {
		e, err := c.entryToRead(k, n.example)
		if err != nil {
			return nil, err
		}
		s, err := e.ready(ctx, n)
		if !errors.Is(err, errUnused) { // it was stopped just now; another is made
			return s, err
		}
	}
}

// entryToRead returns the entry of a kind for a read, made and started if need be.
func (c *informerCache) entryToRead(k *kind, example runtime.Object) (*entry, error) {
	c.mu.Lock()
	started, e := c.ctx != nil, c.entries[k.key()]
	c.mu.Unlock()
	if !started {
		return nil, &ErrCacheNotStarted{}
	}
	if c.strict && (e == nil || !e.holds(k.form)) {
		return nil, &ErrResourceNotCached{GVK: k.gvk}
	}
	return c.entry(k, example, false)
}

// entry returns the entry of a kind, made and, on a started cache, started if need be. A kind that is not
// installed is an error unless later is set.
func (c *informerCache) entry(k *kind, example runtime.Object, later bool) (*entry, error) {
	c.mu.Lock()
	e := c.entries[k.key()]
	c.mu.Unlock()
	if e != nil {
		k.entry.Store(e)
		return e, nil
	}
	mapping, err := c.mapping(k.gvk)
	if err != nil && !later {
		return nil, fmt.Errorf("cache %s: %w", k.gvk, err)
	}
	example = example.DeepCopyObject() // the caller's object is the caller's
	made := newEntry(c, k.gvk, familyOf(k.form))
	if mapping != nil {
		made.mu.Lock()
		err := made.adopt(example, mapping)
		made.mu.Unlock()
		if err != nil {
			return nil, fmt.Errorf("cache %s: %w", k.gvk, err)
		}
	} else {
		made.example, made.refused = example, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[k.key()]; e != nil {
		k.entry.Store(e)
		return e, nil
	}
	if c.ended {
		return nil, fmt.Errorf("cache %s: %w", k.gvk, errStopped)
	}
	c.entries[k.key()] = made
	k.entry.Store(made)
	c.warnOfSecond(k)
	if c.ctx != nil {
		made.start(c.ctx)
	}
	return made, nil
}

// warnOfSecond says, once for each kind, that it is held in memory twice. The caller holds mu.
func (c *informerCache) warnOfSecond(k *kind) {
	other := structured
	if familyOf(k.form) == structured {
		other = unstructuredFamily
	}
	if c.entries[entryKey{k.gvk, other}] == nil {
		return
	}
	c.log.Info("The kind is now cached twice, once for typed and metadata reads and once for unstructured reads; "+
		"read it in one form to save the memory of the other, or read it live with CacheOptions.DisableFor", "kind", k.gvk.String())
}

// entriesOf returns the entries of all versions and forms of a kind.
func (c *informerCache) entriesOf(gk schema.GroupKind) []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*entry
	for key, e := range c.entries {
		if key.gvk.GroupKind() == gk {
			out = append(out, e)
		}
	}
	return out
}

// GetInformer returns the informer of obj's kind.
func (c *informerCache) GetInformer(ctx context.Context, obj client.Object, opts ...InformerGetOption) (Informer, error) {
	k, err := c.kinds.ofObject(obj)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, k, obj, opts)
}

// GetInformerForKind returns the typed informer of a kind that the scheme knows.
func (c *informerCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, opts ...InformerGetOption) (Informer, error) {
	obj, err := c.scheme.New(gvk)
	if err != nil {
		return nil, err // as it is: runtime.IsNotRegisteredError does not unwrap
	}
	return c.informer(ctx, c.kinds.named(gvk, apiutil.FormOf(obj)), obj, opts)
}

func (c *informerCache) informer(ctx context.Context, k *kind, example runtime.Object, opts []InformerGetOption) (Informer, error) {
	var o InformerGetOptions
	for _, opt := range opts {
		opt(&o)
	}
	block := o.BlockUntilSynced == nil || *o.BlockUntilSynced
	e, err := c.entry(k, example, !block)
	if err != nil {
		return nil, err
	}
	n := need{example: example, form: k.form, all: true}
	if block && c.isStarted() {
		if _, err := e.ready(ctx, n); err != nil {
			return nil, err
		}
	} else if err := e.want(n); err != nil {
		return nil, err
	}
	e.got.Add(1)
	return &informer{entry: e, form: k.form}, nil
}

func (c *informerCache) isStarted() bool {
	select {
	case <-c.started:
		return true
	default:
		return false
	}
}

// IndexField adds an index. It never waits for the kind to be filled.
func (c *informerCache) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	k, err := c.kinds.ofObject(obj)
	if err != nil {
		return err
	}
	if values == nil {
		return fmt.Errorf("index %s by field %q: the function is nil", k.gvk, field)
	}
	e, err := c.entry(k, obj, false)
	if err != nil {
		return err
	}
	if err := e.want(need{example: obj, form: k.form}); err != nil {
		return err
	}
	return e.addIndexers(toolscache.Indexers{indexName(k.form, field): e.fieldIndex(k.form, values)})
}

// RemoveInformer stops the informer of obj's kind and forgets it.
func (c *informerCache) RemoveInformer(_ context.Context, obj client.Object) error {
	k, err := c.kinds.ofObject(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	e := c.entries[k.key()]
	delete(c.entries, k.key())
	c.mu.Unlock()
	if e != nil {
		c.kinds.forget(e)
		e.stop(errStopped)
	}
	return nil
}

// drop stops an entry that nobody uses. Who comes back makes a new one.
func (c *informerCache) drop(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := entryKey{e.gvk, e.family}
	if c.ended || c.entries[key] != e {
		return
	}
	delete(c.entries, key)
	c.log.V(1).Info("An informer that nobody used is stopped", "kind", e.gvk.String(), "after", c.stopUnusedAfter.String())
	c.work.Go(func() {
		c.kinds.forget(e)
		e.stop(errUnused)
	})
}

// Start fills all entries and keeps them up to date until ctx is done.
func (c *informerCache) Start(ctx context.Context) error {
	c.mu.Lock()
	if c.ctx != nil {
		c.mu.Unlock()
		return errors.New("the cache was started before: it can be started once")
	}
	c.ctx = ctx
	for _, e := range c.entries {
		e.start(ctx)
	}
	close(c.started)
	c.mu.Unlock()
	running.add(c)
	defer running.remove(c)

	<-ctx.Done()
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	entries := c.all()
	for _, e := range entries {
		e.stop(errStopped)
	}
	c.work.Wait()
	c.waitForHandlers(entries)
	return nil
}

// all returns the entries that there are now.
func (c *informerCache) all() []*entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.entries))
}

// waitForHandlers waits, within a limit, until no handler is running.
func (c *informerCache) waitForHandlers(entries []*entry) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, e := range entries {
			for _, r := range e.ended {
				if r.hand != nil {
					r.hand.wait()
				}
			}
		}
	}()
	limit := time.NewTimer(handlerStopLimit)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		c.log.Info("The cache ends although an event handler is still running", "waited", handlerStopLimit.String())
	}
}

// WaitForCacheSync waits until the cache is started and every entry it has by then is filled.
func (c *informerCache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-ctx.Done():
		return false
	}
	for _, e := range c.all() {
		for _, filled := range e.awaited() {
			select {
			case <-filled:
			case <-e.gone:
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}
