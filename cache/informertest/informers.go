// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/controller/controllertest"
)

// FakeInformers is a cache whose informers a test feeds by hand. The zero value is ready. It holds no objects for
// reads: Get and List change nothing and return Error.
type FakeInformers struct {
	// InformersByGVK holds the informers made so far; a test may put its own in before use.
	InformersByGVK map[schema.GroupVersionKind]toolscache.SharedIndexInformer
	// Scheme tells the kinds of typed objects. Nil means the default scheme.
	Scheme *runtime.Scheme
	// Error is what every method returns that can fail.
	Error error
	// Synced is what WaitForCacheSync returns, and whether informers that are made are synced. Nil means true.
	Synced *bool

	mu sync.Mutex
}

var _ cache.Cache = (*FakeInformers)(nil)

// GetInformer returns the informer of obj's kind, made if need be.
func (f *FakeInformers) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(obj, f.Scheme)
	if err != nil {
		return nil, err
	}
	return f.informer(gvk)
}

// GetInformerForKind returns the informer of a kind, made if need be.
func (f *FakeInformers) GetInformerForKind(_ context.Context, gvk schema.GroupVersionKind, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return f.informer(gvk)
}

// FakeInformerFor returns the informer of obj's kind as the fake that it is.
func (f *FakeInformers) FakeInformerFor(_ context.Context, obj client.Object) (*controllertest.FakeInformer, error) {
	gvk, err := apiutil.GVKForObject(obj, f.Scheme)
	if err != nil {
		return nil, err
	}
	return f.fake(gvk)
}

// FakeInformerForKind returns the informer of a kind as the fake that it is.
func (f *FakeInformers) FakeInformerForKind(_ context.Context, gvk schema.GroupVersionKind) (*controllertest.FakeInformer, error) {
	return f.fake(gvk)
}

func (f *FakeInformers) fake(gvk schema.GroupVersionKind) (*controllertest.FakeInformer, error) {
	i, err := f.informer(gvk)
	if err != nil {
		return nil, err
	}
	fake, ok := i.(*controllertest.FakeInformer)
	if !ok {
		return nil, fmt.Errorf("the informer of %s is a %T, put there by the test", gvk, i)
	}
	return fake, nil
}

func (f *FakeInformers) informer(gvk schema.GroupVersionKind) (toolscache.SharedIndexInformer, error) {
	if f.Error != nil {
		return nil, f.Error
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.InformersByGVK == nil {
		f.InformersByGVK = map[schema.GroupVersionKind]toolscache.SharedIndexInformer{}
	}
	if f.InformersByGVK[gvk] == nil {
		if f.Synced == nil || *f.Synced {
			f.InformersByGVK[gvk] = controllertest.NewFakeInformer(controllertest.Synced)
		} else {
			f.InformersByGVK[gvk] = controllertest.NewFakeInformer()
		}
	}
	return f.InformersByGVK[gvk], nil
}

// RemoveInformer forgets the informer of obj's kind.
func (f *FakeInformers) RemoveInformer(_ context.Context, obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, f.Scheme)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.InformersByGVK, gvk)
	return nil
}

// Start returns Error, at once: a test feeds the informers itself.
func (f *FakeInformers) Start(context.Context) error { return f.Error }

// WaitForCacheSync returns Synced.
func (f *FakeInformers) WaitForCacheSync(context.Context) bool { return f.Synced == nil || *f.Synced }

// IndexField adds an index to the informer of obj's kind, if that takes indexes.
func (f *FakeInformers) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(obj, f.Scheme)
	if err != nil {
		return err
	}
	i, err := f.informer(gvk)
	if err != nil {
		return err
	}
	return i.AddIndexers(toolscache.Indexers{"field:" + field: func(in any) ([]string, error) {
		o, ok := in.(client.Object)
		if !ok {
			return nil, errors.New("not an object")
		}
		return values(o), nil
	}})
}

// Get returns Error and leaves obj alone.
func (f *FakeInformers) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.Error
}

// List returns Error and leaves list alone.
func (f *FakeInformers) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return f.Error
}
