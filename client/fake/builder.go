// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/testing"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/interceptor"
)

// NewFakeClient makes a client with client-go's scheme and the given objects.
//
// It panics where ClientBuilder.Build does.
func NewFakeClient(initObjs ...runtime.Object) client.WithWatch {
	return NewClientBuilder().WithRuntimeObjects(initObjs...).Build()
}

// NewClientBuilder makes a builder of a client that holds nothing.
func NewClientBuilder() *ClientBuilder {
	return &ClientBuilder{}
}

// ClientBuilder says what a client is to be. Its methods give it back, so that calls can be chained. It is good for one
// Build, and not for use by several goroutines.
type ClientBuilder struct {
	scheme     *runtime.Scheme
	mapper     meta.RESTMapper
	objects    []runtime.Object
	status     []client.Object
	indexes    []indexWish
	funcs      *interceptor.Funcs
	tracker    testing.ObjectTracker
	converters []managedfields.TypeConverter
	showFields bool
	global     bool
	behaviour  Behaviour
	built      bool
}

type indexWish struct {
	obj     runtime.Object
	field   string
	extract client.IndexerFunc
}

// WithScheme sets the scheme, which is only read. Without it, client-go's is used.
func (f *ClientBuilder) WithScheme(scheme *runtime.Scheme) *ClientBuilder {
	f.scheme = scheme
	return f
}

// WithRESTMapper sets what RESTMapper returns. It also tells the client resources and scopes of kinds that are not built in.
// Without it, RESTMapper knows nothing.
func (f *ClientBuilder) WithRESTMapper(mapper meta.RESTMapper) *ClientBuilder {
	f.mapper = mapper
	return f
}

// WithObjects adds objects that exist from the beginning. They are copied when Build is called.
func (f *ClientBuilder) WithObjects(initObjs ...client.Object) *ClientBuilder {
	for _, obj := range initObjs {
		f.objects = append(f.objects, obj)
	}
	return f
}

// WithLists adds the items of lists, as WithObjects does.
func (f *ClientBuilder) WithLists(initLists ...client.ObjectList) *ClientBuilder {
	for _, list := range initLists {
		f.objects = append(f.objects, list)
	}
	return f
}

// WithRuntimeObjects adds objects and the items of lists, as WithObjects does.
func (f *ClientBuilder) WithRuntimeObjects(initRuntimeObjs ...runtime.Object) *ClientBuilder {
	f.objects = append(f.objects, initRuntimeObjs...)
	return f
}

// WithObjectTracker keeps the objects in a tracker of client-go's instead of the client's own store, so that a test can share
// them with a fake clientset. The rules of writing are this package's all the same; they are not applied to what is written
// to the tracker directly.
func (f *ClientBuilder) WithObjectTracker(ot testing.ObjectTracker) *ClientBuilder {
	f.tracker = ot
	return f
}

// WithIndex adds an index on a field, by which MatchingFields can then select. obj says for which kind, and in which form the
// function gets its objects. Build panics if there is an index on that field already.
func (f *ClientBuilder) WithIndex(obj runtime.Object, field string, extractValue client.IndexerFunc) *ClientBuilder {
	f.indexes = append(f.indexes, indexWish{obj, field, extractValue})
	return f
}

// WithInterceptorFuncs puts functions in the place of verbs of the client.
func (f *ClientBuilder) WithInterceptorFuncs(interceptorFuncs interceptor.Funcs) *ClientBuilder {
	f.funcs = &interceptorFuncs
	return f
}

// WithStatusSubresource tells that the kinds of the given objects have a status sub-resource: an Update then leaves the
// status alone, and Status() everything else. Those of built-in kinds are known.
func (f *ClientBuilder) WithStatusSubresource(o ...client.Object) *ClientBuilder {
	f.status = append(f.status, o...)
	return f
}

// WithReturnManagedFields makes managedFields part of what is read. Without it they are kept and not shown.
func (f *ClientBuilder) WithReturnManagedFields() *ClientBuilder {
	f.showFields = true
	return f
}

// WithTypeConverters sets what tells the field manager the structure of types, in the order in which they are tried.
// Without it these are client-go's for built-in kinds and, for all others, one that deduces the structure from the object
// and takes every list for atomic.
func (f *ClientBuilder) WithTypeConverters(typeConverters ...managedfields.TypeConverter) *ClientBuilder {
	f.converters = append(f.converters, typeConverters...)
	return f
}

// WithGlobalResourceVersionCounter numbers all writes with one counter, as the server does, instead of those of each object.
// A Watch can then go on from a version.
func (f *ClientBuilder) WithGlobalResourceVersionCounter() *ClientBuilder {
	f.global = true
	return f
}

// WithServerBehaviour switches on what an API server does and tests in the field do not expect. Several calls add up.
func (f *ClientBuilder) WithServerBehaviour(behaviours ...Behaviour) *ClientBuilder {
	for _, b := range behaviours {
		f.behaviour |= b
	}
	return f
}

// Build makes the client. It panics if an object cannot be added, if an index is given twice, or if it was called before:
// all of these are mistakes of the test.
func (f *ClientBuilder) Build() client.WithWatch {
	if f.built {
		panic("Build() must not be called multiple times when creating a ClientBuilder")
	}
	f.built = true
	e, err := f.engine()
	if err != nil {
		panic(err.Error())
	}
	c := &fakeClient{e: e, indexes: &indexes{kinds: e.kinds, byKind: map[schema.GroupVersionKind]map[string]func(client.Object) []string{}}}
	for _, i := range f.indexes {
		if err := c.indexes.add(i.obj, i.field, i.extract); err != nil {
			panic(err.Error())
		}
	}
	for _, obj := range f.objects {
		if err := c.preload(obj); err != nil {
			panic(fmt.Sprintf("failed to add object %v to fake client: %v", obj, err))
		}
	}
	if f.funcs != nil {
		return &intercepted{WithWatch: interceptor.NewClient(c, *f.funcs), behind: c}
	}
	return c
}

func (f *ClientBuilder) engine() (*engine, error) {
	s := f.scheme
	if s == nil {
		s = scheme.Scheme
	}
	mapper := f.mapper
	if mapper == nil {
		mapper = meta.NewDefaultRESTMapper(nil)
	}
	status := map[schema.GroupKind]bool{}
	for _, obj := range f.status {
		gvk, err := apiutil.GVKForObject(obj, s)
		if err != nil {
			return nil, fmt.Errorf("WithStatusSubresource: %w", err)
		}
		status[gvk.GroupKind()] = true
	}
	ks := &kinds{scheme: s, mapper: mapper, status: status}
	e := &engine{
		kinds:        ks,
		behaviour:    f.behaviour,
		showManagers: f.showFields,
		managers: &managers{kinds: ks, resetOn: f.behaviour.has(StatusReset), converters: f.converters,
			byKey: map[managerKey]*managedfields.FieldManager{}},
		rows:     memory{},
		versions: versions{global: f.global || f.behaviour.has(ListVersions)},
	}
	if f.tracker != nil {
		e.rows = tracked{f.tracker}
	}
	e.watches = watches{
		open: map[schema.GroupVersionResource][]*subscription{}, history: map[schema.GroupVersionResource][]change{},
		keep: e.versions.global,
	}
	return e, nil
}

// preload adds a fixture, or the items of a list.
func (c *fakeClient) preload(obj runtime.Object) error {
	if meta.IsListType(obj) {
		return meta.EachListItem(obj, c.preload)
	}
	k, err := c.kindOf(obj)
	if err != nil {
		return err
	}
	stored, err := c.e.toStored(k, obj)
	if err != nil {
		return err
	}
	return c.e.preload(k, stored)
}

// intercepted is an intercepted client that remembers the one behind it.
type intercepted struct {
	client.WithWatch
	behind *fakeClient
}

// AddIndex adds an index to a client of this package, also to one with interceptor functions, as WithIndex does. It fails for
// any other client, and if there is an index on that field already.
func AddIndex(c client.Client, obj runtime.Object, field string, extractValue client.IndexerFunc) error {
	switch c := c.(type) {
	case *fakeClient:
		return c.indexes.add(obj, field, extractValue)
	case *intercepted:
		return c.behind.indexes.add(obj, field, extractValue)
	}
	return fmt.Errorf("add index on field %q: %T is no client of this package", field, c)
}
