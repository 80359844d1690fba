// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"fmt"
	"time"
)

// KV is one key as it is stored, for those who work below the API: seeding, and the few callers of etcd that an API
// server has.
type KV struct {
	Key            string
	Value          []byte // not to be changed
	CreateRevision int64
	ModRevision    int64
	Expires        time.Time // zero for never
}

func kvOf(v *version) *KV {
	kv := &KV{Key: v.key, Value: v.value, CreateRevision: v.created, ModRevision: v.mod}
	if v.expires != 0 {
		kv.Expires = time.Unix(0, v.expires)
	}
	return kv
}

// AnyRevision makes an [Op] unconditional.
const AnyRevision = anyRevision

// Op is one write of a transaction.
type Op struct {
	Key    string
	Value  []byte // the store's after the call; nil deletes the key
	Expect int64  // the ModRevision the key must have: 0 for "no such key", AnyRevision for anything
	// Expires is when the store deletes the key by itself. Zero means never.
	Expires time.Time
}

// Result is the outcome of a transaction.
type Result struct {
	// Applied tells whether the conditions held and the writes were made.
	Applied bool
	// Revision is that of the last write, or of the store if nothing was written.
	Revision int64
	// Current is what the first condition that failed met, nil if there was no such key.
	Current *KV
}

// Get gives a key, or nil if there is none, and the revision of the store.
func (s *Store) Get(key string) (*KV, int64) {
	v, rev := s.current(key)
	if v == nil {
		return nil, rev
	}
	return kvOf(v), rev
}

// Range gives the keys with a prefix, in order, at most limit of them (0 for all), the number of all of them, and the
// revision of the store.
func (s *Store) Range(prefix string, limit int) (kvs []*KV, count int, rev int64) {
	v, err := s.viewAt(0, prefix)
	if err != nil {
		return nil, 0, s.Revision()
	}
	v.ascend(prefix, "", func(v *version) bool {
		kvs = append(kvs, kvOf(v))
		return limit == 0 || len(kvs) < limit
	})
	return kvs, v.count(prefix, ""), v.rev
}

// Put writes a key if its ModRevision is expect. It blocks until the write is as durable as the mode promises.
func (s *Store) Put(ctx context.Context, key string, value []byte, expect int64) (Result, error) {
	if value == nil {
		value = []byte{}
	}
	return s.Txn(ctx, Op{Key: key, Value: value, Expect: expect})
}

// Delete removes a key if its ModRevision is expect. Deleting what is not there, with AnyRevision or 0, is applied and
// changes nothing.
func (s *Store) Delete(ctx context.Context, key string, expect int64) (Result, error) {
	return s.Txn(ctx, Op{Key: key, Expect: expect})
}

// Txn makes all writes if all conditions hold, and none otherwise. Conditions are checked before the first write.
// Each write has a revision of its own. Nobody sees some of them without the others.
func (s *Store) Txn(ctx context.Context, ops ...Op) (Result, error) {
	r := &request{ctx: ctx}
	for _, o := range ops {
		w := write{op: op{kind: opPut, key: o.Key, value: o.Value}, expect: o.Expect}
		if o.Value == nil {
			w.kind = opDelete
		} else if !o.Expires.IsZero() {
			w.expires = o.Expires.UnixNano()
		}
		if err := checkSize(o.Key, o.Value); err != nil {
			return Result{}, err
		}
		r.writes = append(r.writes, w)
	}
	if err := s.do(r); err != nil {
		return Result{}, err
	}
	result := Result{Applied: r.applied, Revision: r.rev}
	if r.current != nil {
		result.Current = kvOf(r.current)
	}
	return result, nil
}

func checkSize(key string, value []byte) error {
	switch {
	case key == "" || len(key) > maxKeyBytes:
		return fmt.Errorf("a key of %d bytes: the store takes 1 to %d", len(key), maxKeyBytes)
	case len(value) > maxValueBytes:
		return refused(fmt.Errorf("%w: %s has %d bytes, the store takes %d", errTooLarge, key, len(value), maxValueBytes))
	}
	return nil
}
