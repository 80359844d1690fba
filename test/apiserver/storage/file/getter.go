// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// RESTOptionsGetter tells registries to keep their objects in a [Store]. Everything but that, such as codec, storage
// version, prefix and encryption, is as an API server's own getter says.
type RESTOptionsGetter struct {
	inner generic.RESTOptionsGetter
	store *Store
}

var _ generic.RESTOptionsGetter = (*RESTOptionsGetter)(nil)

// NewRESTOptionsGetter wraps the getter an API server has built.
func NewRESTOptionsGetter(inner generic.RESTOptionsGetter, s *Store) *RESTOptionsGetter {
	return &RESTOptionsGetter{inner: inner, store: s}
}

// GetRESTOptions gives what the wrapped getter gives, with storage in the store and without a watch cache.
func (r *RESTOptionsGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	o, err := r.inner.GetRESTOptions(resource, example)
	if err != nil {
		return o, err
	}
	o.Decorator = r.decorate
	return o, nil
}

// decorate is a generic.StorageDecorator.
func (r *RESTOptionsGetter) decorate(config *storagebackend.ConfigForResource, resourcePrefix string,
	_ func(runtime.Object) (string, error), newFunc, _ func() runtime.Object, _ storage.AttrFunc,
	_ storage.IndexerFuncs, _ *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	st, err := NewStorage(r.store, StorageOptions{
		Codec: config.Codec, Transformer: config.Transformer, Prefix: config.Prefix,
		ResourcePrefix: resourcePrefix, GroupResource: config.GroupResource, NewFunc: newFunc,
	})
	if err != nil {
		return nil, nil, err
	}
	return st, st.Destroy, nil
}
