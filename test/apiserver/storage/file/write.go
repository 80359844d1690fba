// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
)

// Create implements storage.Interface. It leaves obj without a resource version.
func (st *Storage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) (err error) {
	start := time.Now()
	defer func() { metrics.RecordEtcdRequest("create", st.opts.GroupResource, err, start) }()
	key, err = st.key(key, false)
	if err != nil {
		return err
	}
	if rev, err := st.versioner.ObjectResourceVersion(obj); err == nil && rev != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	if err := st.versioner.PrepareObjectForStorage(obj); err != nil {
		return fmt.Errorf("prepare %s for storage: %w", key, err)
	}
	data, err := runtime.Encode(st.opts.Codec, obj)
	if err != nil {
		return err
	}
	r, err := st.put(ctx, key, data, 0, st.store.deadline(ttl))
	if err != nil {
		return err
	}
	if !r.applied {
		return storage.NewKeyExistsError(key, 0)
	}
	if out == nil {
		return nil
	}
	return st.assignData(r.made, data, out)
}

// put writes data under key if the key's revision is expect.
func (st *Storage) put(ctx context.Context, key string, data []byte, expect, expires int64) (*request, error) {
	way := st.way.Load()
	stored := data
	if !way.plain {
		var err error
		if stored, err = way.transformer.TransformToStorage(ctx, data, dataContext(key)); err != nil {
			return nil, storage.NewInternalError(err)
		}
	}
	w := write{op: op{kind: opPut, key: key, value: stored, expires: expires}, expect: expect}
	if st.share {
		// Decoded here, where callers work side by side, and before anybody else can ask for it. A value that cannot
		// be decoded is stored all the same, and whoever reads it hears why.
		if obj, err := st.decode(data, 0); err == nil {
			w.object = st.newObject(way.scope, obj)
		}
	}
	if err := checkSize(key, stored); err != nil {
		return nil, err
	}
	r := &request{ctx: ctx, writes: []write{w}}
	return r, st.store.do(r)
}

// deadline turns a time to live in seconds into a point in time.
func (s *Store) deadline(ttl uint64) int64 {
	const longest = 100 * 365 * 24 * 3600 // a century; more would not fit
	if ttl == 0 {
		return 0
	}
	return s.now().Add(time.Duration(min(ttl, longest)) * time.Second).UnixNano()
}

// state is what a conditional write builds on.
type state struct {
	version *version       // nil if there is no such key
	obj     runtime.Object // the caller's to change; nil if it cannot be read and need not be
	meta    storage.ResponseMeta
	rev     int64
	data    []byte
	stale   bool
}

// load reads the present state of key for an update whose result goes into an object of the given type.
func (st *Storage) load(ctx context.Context, key string, t reflect.Type, ignoreNotFound bool, sample runtime.Object) (*state, error) {
	v, _ := st.store.current(key)
	return st.stateOf(ctx, key, v, t, ignoreNotFound, sample)
}

func (st *Storage) stateOf(ctx context.Context, key string, v *version, t reflect.Type, ignoreNotFound bool, sample runtime.Object) (*state, error) {
	s := &state{}
	if u, ok := sample.(runtime.Unstructured); ok {
		s.obj = u.NewEmptyInstance()
	} else {
		s.obj = reflect.New(t).Interface().(runtime.Object)
	}
	if v == nil {
		if !ignoreNotFound {
			return nil, storage.NewKeyNotFoundError(key, 0)
		}
		return s, runtime.SetZeroValue(s.obj)
	}
	s.version, s.rev = v, v.mod
	s.meta = storage.ResponseMeta{ResourceVersion: uint64(v.mod), TTL: st.store.timeLeft(v)}
	var err error
	if s.data, s.stale, err = st.way.Load().open(ctx, key, v.value); err != nil {
		return nil, st.readError(key, err)
	}
	if err := st.assignData(v, s.data, s.obj); err != nil {
		return nil, st.readError(key, err)
	}
	return s, nil
}

// timeLeft gives what is left of a version's time to live in seconds, at least 1, or 0 if it lives for ever.
func (s *Store) timeLeft(v *version) int64 {
	if v.expires == 0 {
		return 0
	}
	left := time.Duration(v.expires - s.now().UnixNano())
	return max(1, int64((left+time.Second-1)/time.Second))
}

// GuaranteedUpdate implements storage.Interface.
func (st *Storage) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object,
) (err error) {
	start := time.Now()
	defer func() { metrics.RecordEtcdRequest("update", st.opts.GroupResource, err, start) }()
	key, err = st.key(key, false)
	if err != nil {
		return err
	}
	target, err := conversion.EnforcePtr(out)
	if err != nil {
		return fmt.Errorf("the output is no pointer: %w", err)
	}
	for {
		s, err := st.load(ctx, key, target.Type(), ignoreNotFound, out)
		if err != nil {
			return err
		}
		done, err := st.tryUpdate(ctx, key, out, s, preconditions, update)
		if done || err != nil {
			return err
		}
		// Somebody else was faster. Whoever loses has made room for a winner, so this ends.
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// tryUpdate makes one attempt on top of s. It is not done if the state has changed meanwhile.
func (st *Storage) tryUpdate(ctx context.Context, key string, out runtime.Object, s *state,
	preconditions *storage.Preconditions, update storage.UpdateFunc,
) (bool, error) {
	if err := preconditions.Check(key, s.obj); err != nil {
		return false, err
	}
	obj, ttl, err := update(s.obj, s.meta)
	if err != nil {
		return false, err
	}
	if err := st.versioner.PrepareObjectForStorage(obj); err != nil {
		return false, fmt.Errorf("prepare %s for storage: %w", key, err)
	}
	data, err := runtime.Encode(st.opts.Codec, obj)
	if err != nil {
		return false, err
	}
	if s.version != nil && !s.stale && bytes.Equal(data, s.data) {
		return true, st.assignData(s.version, data, out)
	}
	// NB: without a new time to live the old one goes on, as the interface says. etcd3 forgets it in that case.
	var expires int64
	switch {
	case ttl != nil:
		expires = st.store.deadline(*ttl)
	case s.version != nil:
		expires = s.version.expires
	}
	r, err := st.put(ctx, key, data, s.rev, expires)
	if err != nil || !r.applied {
		return false, err
	}
	return true, st.assignData(r.made, data, out)
}

// Delete implements storage.Interface.
func (st *Storage) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, opts storage.DeleteOptions,
) (err error) {
	start := time.Now()
	defer func() { metrics.RecordEtcdRequest("delete", st.opts.GroupResource, err, start) }()
	key, err = st.key(key, false)
	if err != nil {
		return err
	}
	target, err := conversion.EnforcePtr(out)
	if err != nil {
		return fmt.Errorf("the output is no pointer: %w", err)
	}
	unreadable := opts.ExpectTransformOrDecodeError && unsafeDeletionAllowed()
	for {
		v, _ := st.store.current(key)
		s, err := st.loadForDeletion(ctx, key, v, target.Type(), unreadable, out)
		if err != nil {
			return err
		}
		if preconditions != nil {
			if err := preconditions.Check(key, s.obj); err != nil {
				return err
			}
		}
		if err := validate(ctx, s.obj); err != nil {
			return err
		}
		r := &request{ctx: ctx, writes: []write{{op: op{kind: opDelete, key: key}, expect: s.rev}}}
		if err := st.store.do(r); err != nil {
			return err
		}
		if r.applied {
			if unreadable {
				return nil
			}
			if err := st.assignData(v, s.data, out); err != nil {
				return err
			}
			return st.setRevision(out, r.rev)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (st *Storage) loadForDeletion(ctx context.Context, key string, v *version, t reflect.Type, unreadable bool, sample runtime.Object) (*state, error) {
	if !unreadable {
		return st.stateOf(ctx, key, v, t, false, sample)
	}
	if v == nil {
		return nil, storage.NewKeyNotFoundError(key, 0)
	}
	if err := st.openForDeletion(ctx, v); err != nil {
		return nil, err
	}
	return &state{rev: v.mod}, nil
}
