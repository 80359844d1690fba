// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// Get implements storage.Interface. It always gives the newest state.
func (st *Storage) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) (err error) {
	start := time.Now()
	defer func() { metrics.RecordEtcdRequest("get", st.opts.GroupResource, err, start) }()
	key, err = st.key(key, false)
	if err != nil {
		return err
	}
	v, rev := st.store.current(key)
	if err := st.atLeast(opts.ResourceVersion, rev); err != nil {
		return err
	}
	if v == nil {
		if opts.IgnoreNotFound {
			return runtime.SetZeroValue(out)
		}
		return storage.NewKeyNotFoundError(key, 0)
	}
	return st.assign(ctx, v, out)
}

// GetList implements storage.Interface. The items are shared: they must not be changed below their own fields.
func (st *Storage) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) (err error) {
	start := time.Now()
	defer func() { metrics.RecordEtcdRequest("list", st.opts.GroupResource, err, start) }()
	prefix, err := st.key(key, opts.Recursive)
	if err != nil {
		return err
	}
	rev, from, err := storage.ValidateListOptions(prefix, st.versioner, opts)
	if err != nil {
		return err
	}
	l := listing{st: st, ctx: ctx, opts: opts, prefix: prefix, from: from}
	if l.view, err = st.store.viewAt(rev, prefix); err != nil {
		return l.viewError(err, rev)
	}
	if rev == 0 {
		if err := st.atLeast(opts.ResourceVersion, l.view.rev); err != nil {
			return err
		}
	}
	if l.items, err = itemsOf(list); err != nil {
		return err
	}
	if err := l.fill(); err != nil {
		return err
	}
	metrics.RecordStorageListMetrics(st.opts.GroupResource, "", l.seen, l.seen, l.items.Len())
	return l.finish(list)
}

func itemsOf(list runtime.Object) (reflect.Value, error) {
	ptr, err := meta.GetItemsPtr(list)
	if err != nil {
		return reflect.Value{}, err
	}
	items, err := conversion.EnforcePtr(ptr)
	if err != nil || items.Kind() != reflect.Slice {
		return reflect.Value{}, fmt.Errorf("the list's items are no slice: %w", err)
	}
	return items, nil
}

// listing is one GetList under way.
type listing struct {
	st     *Storage
	ctx    context.Context
	opts   storage.ListOptions
	prefix string // or the key of a list of one
	from   string

	view     view
	items    reflect.Value
	seen     int
	last     string // the last key looked at
	more     bool   // there are keys behind it
	failures listFailures
}

// viewError turns the reason why there is no such state into what the client needs to know.
func (l *listing) viewError(err error, rev int64) error {
	switch {
	case errors.Is(err, ErrFutureRevision):
		return storage.NewTooLargeResourceVersionError(uint64(rev), uint64(l.view.rev), 0)
	case errors.Is(err, ErrCompacted) && l.opts.Predicate.Continue != "":
		return expiredContinue(l.from, l.prefix)
	case errors.Is(err, ErrCompacted):
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	return err
}

// expiredContinue says that a paged list cannot go on as one consistent list, and offers a token with which it can go
// on inconsistently.
func expiredContinue(from, prefix string) error {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve " +
		"the rest: objects that changed meanwhile may then be missing or listed twice.")
	token, tokenErr := storage.EncodeContinue(from, prefix, -1)
	if tokenErr != nil {
		return apierrors.NewResourceExpired("The provided continue parameter is too old: start a new list without it.")
	}
	err.ErrStatus.ListMeta.Continue = token
	return err
}

func (l *listing) fill() error {
	if !l.opts.Recursive {
		if v := l.view.get(l.prefix); v != nil {
			l.add(v)
		}
		return l.failures.err(l.st.opts.GroupResource)
	}
	if l.opts.Predicate.Empty() {
		l.grow(l.view.count(l.prefix, l.from))
	}
	limit := int(l.opts.Predicate.Limit)
	l.view.ascend(l.prefix, l.from, func(v *version) bool {
		if limit > 0 && l.items.Len() >= limit {
			l.more = true
			return false
		}
		l.last = v.key
		return l.add(v)
	})
	return l.failures.err(l.st.opts.GroupResource)
}

// grow makes room for n items, or for a page of them.
func (l *listing) grow(n int) {
	if limit := l.opts.Predicate.Limit; limit > 0 {
		n = min(n, int(limit))
	}
	if n > l.items.Cap() {
		room := reflect.MakeSlice(l.items.Type(), l.items.Len(), n)
		reflect.Copy(room, l.items)
		l.items.Set(room)
	}
}

// add puts v into the list if it matches, and tells whether to go on.
func (l *listing) add(v *version) bool {
	const checkEvery = 256
	if l.seen++; l.seen%checkEvery == 0 && l.ctx.Err() != nil {
		l.failures.abort = storage.NewTimeoutError(v.key, "request did not complete within requested timeout")
		return false
	}
	o, err := l.st.sharedVersion(l.ctx, v)
	if err != nil {
		return !l.failures.add(v.key, err)
	}
	matched, err := l.opts.Predicate.Matches(o.value)
	if err != nil || !matched {
		return true
	}
	item := reflect.ValueOf(o.value).Elem()
	n := l.items.Len()
	if item.Type() != l.items.Type().Elem() {
		return l.addOther(v)
	}
	if n < l.items.Cap() {
		l.items.SetLen(n + 1)
		l.items.Index(n).Set(item)
	} else {
		l.items.Set(reflect.Append(l.items, item))
	}
	return true
}

// addOther adds an item to a list of another type than the storage's own.
func (l *listing) addOther(v *version) bool {
	item := reflect.New(l.items.Type().Elem())
	obj, ok := item.Interface().(runtime.Object)
	if !ok {
		l.failures.abort = fmt.Errorf("items of type %s are no objects", item.Type())
		return false
	}
	if err := l.st.assign(l.ctx, v, obj); err != nil {
		return !l.failures.add(v.key, err)
	}
	l.items.Set(reflect.Append(l.items, item.Elem()))
	return true
}

func (l *listing) finish(list runtime.Object) error {
	var left int64
	if l.more {
		left = int64(l.view.count(l.prefix, l.from))
	}
	token, remaining, err := storage.PrepareContinueToken(l.last, l.prefix, l.view.rev, left, l.more, l.opts)
	if err != nil {
		return err
	}
	if l.items.IsNil() {
		l.items.Set(reflect.MakeSlice(l.items.Type(), 0, 0))
	}
	if err := l.st.versioner.UpdateList(list, uint64(l.view.rev), token, remaining); err != nil {
		return err
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.ShardedListAndWatch) {
		l.opts.Predicate.SetShardInfoOnList(list)
	}
	return nil
}
