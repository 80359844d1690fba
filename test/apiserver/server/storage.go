// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

// facadeKeys are the keys kube-apiserver reads and writes in etcd itself: the NodePort allocator's bitmap, and the
// probe behind componentstatuses.
var facadeKeys = []string{
	"/registry/ranges/servicenodeports",
	"/registry/health",
}

// wrapStorage puts our storage behind every resource. Each of the four getters is kube-apiserver's own, which knows
// codec, version, prefix and transformer of each resource; only what it would store them in is replaced.
func (p *parts) wrapStorage(c *app.Config) {
	kube, ext, agg := c.KubeAPIs.ControlPlane.Generic, c.ApiExtensions, c.Aggregator.GenericConfig
	kube.RESTOptionsGetter = file.NewRESTOptionsGetter(kube.RESTOptionsGetter, p.store)
	ext.GenericConfig.RESTOptionsGetter = file.NewRESTOptionsGetter(ext.GenericConfig.RESTOptionsGetter, p.store)
	ext.ExtraConfig.CRDRESTOptionsGetter = file.NewRESTOptionsGetter(ext.ExtraConfig.CRDRESTOptionsGetter, p.store)
	agg.RESTOptionsGetter = file.NewRESTOptionsGetter(agg.RESTOptionsGetter, p.store)
}

// raw is the store as the facade wants it.
type raw struct{ store *file.Store }

func (r raw) Get(_ context.Context, key string) (value []byte, revision int64, err error) {
	kv, _ := r.store.Get(key)
	if kv == nil {
		return nil, 0, nil
	}
	return kv.Value, kv.ModRevision, nil
}

func (r raw) Put(ctx context.Context, key string, value []byte, revision int64) (written int64, ok bool, err error) {
	done, err := r.store.Put(ctx, key, value, revision)
	return done.Revision, done.Applied, err
}

func (r raw) Delete(ctx context.Context, key string, revision int64) (written int64, ok bool, err error) {
	done, err := r.store.Delete(ctx, key, revision)
	return done.Revision, done.Applied, err
}

func (r raw) Revision() int64 { return r.store.Revision() }
