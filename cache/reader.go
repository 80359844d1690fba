// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// CacheReader reads objects of one kind from a store, without waiting and without a request. It does not know
// of writes that have not come back by watch.
type CacheReader struct {
	// indexer holds the objects.
	indexer cache.Indexer

	// groupVersionKind is the kind of every object in the indexer.
	groupVersionKind schema.GroupVersionKind

	// scopeName tells whether the kind lives in namespaces. Reads of one that does not ignore namespaces.
	scopeName apimeta.RESTScopeName

	// disableDeepCopy makes reads share objects with the indexer unless a call says otherwise.
	disableDeepCopy bool

	// shape is that of the objects in the indexer, if it is known.
	shape *shape
}

var _ client.Reader = (*CacheReader)(nil)

// Get copies the object under key into out, or fails with a NotFound error.
func (r *CacheReader) Get(_ context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	return r.read(key, out, r.sharedGet(opts))
}

func (r *CacheReader) read(key client.ObjectKey, out client.Object, shared bool) error {
	var obj any
	if s, ok := r.indexer.(*store); ok {
		namespace := key.Namespace
		if r.scopeName == apimeta.RESTScopeNameRoot {
			namespace = ""
		}
		obj = s.named(namespace, key.Name)
	} else {
		var err error
		if obj, _, err = r.indexer.GetByKey(r.storeKey(key)); err != nil {
			return err
		}
	}
	if obj == nil {
		return r.notFound(key)
	}
	return r.emit(obj, out, shared)
}

// sharedGet tells whether a Get shares objects. The common cases cost no allocation.
func (r *CacheReader) sharedGet(opts []client.GetOption) bool {
	switch len(opts) {
	case 0:
		return r.disableDeepCopy
	case 1:
		if share, ok := opts[0].(client.UnsafeDisableDeepCopyOption); ok {
			return bool(share)
		}
	}
	return r.sharedBy(opts)
}

func (r *CacheReader) sharedBy(opts []client.GetOption) bool {
	var o client.GetOptions
	o.ApplyOptions(opts)
	if o.UnsafeDisableDeepCopy != nil {
		return *o.UnsafeDisableDeepCopy
	}
	return r.disableDeepCopy
}

// List makes the objects that opts select the items of out, in the order of the server: by namespace and name.
func (r *CacheReader) List(_ context.Context, out client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	q, err := r.query(&o, apiutil.FormOf(out))
	if err != nil {
		return err
	}
	found, more, err := r.find(q)
	if err != nil {
		return r.explain(err, &o)
	}
	return r.emitList(found, more, out, r.sharedList(&o))
}

func (r *CacheReader) sharedList(o *client.ListOptions) bool {
	if o.UnsafeDisableDeepCopy != nil {
		return *o.UnsafeDisableDeepCopy
	}
	return r.disableDeepCopy
}

// query turns list options into a query of the store.
func (r *CacheReader) query(o *client.ListOptions, form apiutil.Form) (*query, error) {
	q := &query{limit: int(o.Limit), selector: o.LabelSelector, terms: fieldTerms(o.FieldSelector), index: indexNames(form)}
	if o.Namespace != "" && r.scopeName != apimeta.RESTScopeNameRoot {
		q.prefix = o.Namespace + "/"
	}
	if o.Continue != "" {
		after, err := readToken(o.Continue)
		if err != nil {
			return nil, err
		}
		q.after = after
	}
	return q, nil
}

// find runs a query.
func (r *CacheReader) find(q *query) ([]stored, bool, error) {
	s, ok := r.indexer.(*store)
	if !ok {
		return nil, false, fmt.Errorf("the indexer of %s is a %T, which does not answer queries", r.groupVersionKind, r.indexer)
	}
	return s.query(q)
}

// emit gives a found object to the caller.
func (r *CacheReader) emit(obj any, out client.Object, shared bool) error {
	s := r.shape
	switch {
	case s == nil || !s.isOf(obj) || !s.isOf(out):
		return copyTo(obj.(runtime.Object), out, r.groupVersionKind, shared)
	case shared:
		flat(obj, out)
	default:
		s.deep(obj, pointerTo(obj), pointerTo(out))
	}
	return nil
}

func (r *CacheReader) emitList(found []stored, more bool, out client.ObjectList, shared bool) error {
	if err := fillList(out, found, r.groupVersionKind, shared); err != nil {
		return err
	}
	out.SetResourceVersion("")
	out.SetRemainingItemCount(nil)
	out.SetContinue("")
	if more {
		out.SetContinue(writeToken(found[len(found)-1].key))
	}
	return nil
}

func (r *CacheReader) storeKey(key client.ObjectKey) string {
	if key.Namespace == "" || r.scopeName == apimeta.RESTScopeNameRoot {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

func (r *CacheReader) notFound(key client.ObjectKey) error {
	return apierrors.NewNotFound(schema.GroupResource{
		Group: r.groupVersionKind.Group,
		// The kind stands for the resource's name here, as operators know it from their logs.
		Resource: r.groupVersionKind.Kind,
	}, key.Name)
}

// explain adds to an error of a query what was asked for and what to do.
func (r *CacheReader) explain(err error, o *client.ListOptions) error {
	where := "all namespaces"
	if o.Namespace != "" {
		where = fmt.Sprintf("namespace %q", o.Namespace)
	}
	return fmt.Errorf("list %s in %s from the cache by field selector %q: %w; register it with IndexField before use",
		r.groupVersionKind, where, o.FieldSelector, err)
}

// tokenPrefix tells a continue token of the cache from one of the server.
const tokenPrefix = "wherry1:"

// writeToken makes the continue token of a page that ended with key. The rest is whatever sorts after it, so
// objects that are there throughout a paged read are seen exactly once, however the store changes.
func writeToken(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(tokenPrefix + key))
}

func readToken(token string) (after string, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	key, ok := strings.CutPrefix(string(raw), tokenPrefix)
	if err != nil || !ok {
		return "", apierrors.NewBadRequest(fmt.Sprintf("the continue token %q is not one of the cache", token))
	}
	return key, nil
}

// Names of the indexes in a store. Those that IndexField makes differ by form: typed functions are given the
// typed object, metadata functions its metadata.
const (
	fieldIndexPrefix    = "field:"
	metadataIndexPrefix = "metadata-field:"
)

// indexNames tells where reads in a form find the index on a field.
func indexNames(form apiutil.Form) func(string) []string {
	if form == apiutil.Metadata {
		return func(field string) []string { return []string{metadataIndexPrefix + field, fieldIndexPrefix + field} }
	}
	return func(field string) []string { return []string{fieldIndexPrefix + field} }
}

// indexName names the index that a form of a kind gets on a field.
func indexName(form apiutil.Form, field string) string { return indexNames(form)(field)[0] }
