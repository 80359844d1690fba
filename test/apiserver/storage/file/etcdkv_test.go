// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"slices"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// plainKV stands in for an etcd behind Kubernetes' own etcd3 storage: the simplest thing that can keep every state,
// and nothing of it is shared with the store it is to judge. Every read replays all writes.
type plainKV struct {
	clientv3.KV      // what is not needed
	clientv3.Watcher // panics
	clientv3.Lease

	mu       sync.Mutex
	changed  *sync.Cond
	writes   []plainWrite
	compacts int64
	watches  int // begun
}

// plainWrite is one write; the i-th has revision i+2, as an empty etcd is at revision 1.
type plainWrite struct {
	key   string
	value []byte // nil for a delete
}

// client gives an etcd client, and the interface Kubernetes puts on top of it, that reach only kv.
func (kv *plainKV) client(ctx context.Context) *kubernetes.Client {
	kv.changed = sync.NewCond(&kv.mu)
	c := clientv3.NewCtxClient(ctx)
	c.KV, c.Watcher, c.Lease = kv, kv, kv
	return &kubernetes.Client{Client: c, Kubernetes: plainKubernetes{kv}}
}

func (kv *plainKV) rev() int64 { return int64(len(kv.writes)) + 1 }

// at gives the keys in [from, to) as they were at rev, in order.
func (kv *plainKV) at(rev int64, from, to string) []*mvccpb.KeyValue {
	state := make(map[string]*mvccpb.KeyValue)
	for i, w := range kv.writes[:rev-1] {
		if w.key < from || w.key >= to {
			continue
		}
		mod := int64(i) + 2
		if w.value == nil {
			delete(state, w.key)
			continue
		}
		n := &mvccpb.KeyValue{Key: []byte(w.key), Value: w.value, ModRevision: mod, CreateRevision: mod, Version: 1}
		if old := state[w.key]; old != nil {
			n.CreateRevision, n.Version = old.CreateRevision, old.Version+1
		}
		state[w.key] = n
	}
	var all []*mvccpb.KeyValue
	for _, v := range state {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b *mvccpb.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return all
}

func (kv *plainKV) read(rev int64, from, to string, limit int64) (all []*mvccpb.KeyValue, count, now int64, err error) {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	now = kv.rev()
	switch {
	case rev == 0:
		rev = now
	case rev > now:
		return nil, 0, now, rpctypes.ErrFutureRev
	case rev < kv.compacts:
		return nil, 0, now, rpctypes.ErrCompacted
	}
	all = kv.at(rev, from, to)
	count = int64(len(all))
	if limit > 0 && count > limit {
		all = all[:limit]
	}
	return all, count, now, nil
}

func (kv *plainKV) one(key string) *mvccpb.KeyValue {
	if all := kv.at(kv.rev(), key, key+"\x00"); len(all) > 0 {
		return all[0]
	}
	return nil
}

// write makes a conditional write.
func (kv *plainKV) write(key string, value []byte, expect int64) (old *mvccpb.KeyValue, ok bool, rev int64) {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	old = kv.one(key)
	mod := int64(0)
	if old != nil {
		mod = old.ModRevision
	}
	if mod != expect || value == nil && old == nil {
		return old, false, kv.rev()
	}
	kv.writes = append(kv.writes, plainWrite{key, value})
	kv.changed.Broadcast()
	return old, true, kv.rev()
}

func (kv *plainKV) compact(rev int64) {
	kv.mu.Lock()
	defer kv.mu.Unlock()
	kv.compacts = max(kv.compacts, rev)
	kv.changed.Broadcast()
}

func (kv *plainKV) Close() error { return nil }

func (kv *plainKV) RequestProgress(context.Context) error { return nil }

func (kv *plainKV) GetStream(context.Context, string, ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return nil, status.Error(codes.Unimplemented, "no streams here")
}

func (kv *plainKV) Get(_ context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	op := clientv3.OpGet(key, opts...)
	to := string(op.RangeBytes())
	if to == "" {
		to = key + "\x00"
	}
	all, count, now, err := kv.read(op.Rev(), key, to, op.Limit())
	if err != nil {
		return nil, err
	}
	return &clientv3.GetResponse{
		Header: &pb.ResponseHeader{Revision: now}, Kvs: all, Count: count, More: int64(len(all)) < count,
	}, nil
}

// Watch sends what happens to a key or prefix from a revision on.
func (kv *plainKV) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, opts...)
	to := string(op.RangeBytes())
	if to == "" {
		to = key + "\x00"
	}
	out := make(chan clientv3.WatchResponse, 1)
	kv.mu.Lock()
	defer kv.mu.Unlock()
	kv.watches++
	if op.Rev() <= kv.compacts && op.Rev() <= kv.rev() {
		out <- clientv3.WatchResponse{CompactRevision: kv.compacts, Canceled: true}
		close(out)
		return out
	}
	stop := context.AfterFunc(ctx, kv.changed.Broadcast)
	go func() {
		defer close(out)
		defer stop()
		for next := op.Rev(); ; {
			kv.mu.Lock()
			for next > kv.rev() && ctx.Err() == nil {
				kv.changed.Wait()
			}
			response := clientv3.WatchResponse{Events: kv.events(next, key, to)}
			next = kv.rev() + 1
			kv.mu.Unlock()
			if ctx.Err() != nil {
				return
			}
			if len(response.Events) == 0 {
				continue
			}
			select {
			case out <- response:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func (kv *plainKV) events(from int64, key, to string) (events []*clientv3.Event) {
	for rev := from; rev <= kv.rev(); rev++ {
		w := kv.writes[rev-2]
		if w.key < key || w.key >= to {
			continue
		}
		e := &clientv3.Event{Type: clientv3.EventTypePut}
		if before := kv.at(rev-1, w.key, w.key+"\x00"); len(before) > 0 {
			e.PrevKv = before[0]
		}
		if w.value == nil {
			e.Type = clientv3.EventTypeDelete
			e.Kv = &mvccpb.KeyValue{Key: []byte(w.key), ModRevision: rev}
		} else {
			e.Kv = kv.at(rev, w.key, w.key+"\x00")[0]
		}
		events = append(events, e)
	}
	return events
}

// plainKubernetes is the part of etcd's client that Kubernetes adds.
type plainKubernetes struct{ kv *plainKV }

func (k plainKubernetes) Get(_ context.Context, key string, o kubernetes.GetOptions) (r kubernetes.GetResponse, err error) {
	all, _, now, err := k.kv.read(o.Revision, key, key+"\x00", 0)
	if len(all) > 0 {
		r.KV = all[0]
	}
	r.Revision = now
	return r, err
}

func (k plainKubernetes) List(_ context.Context, prefix string, o kubernetes.ListOptions) (r kubernetes.ListResponse, err error) {
	r.Kvs, r.Count, r.Revision, err = k.kv.read(o.Revision, max(prefix, o.Continue), prefixEnd(prefix), o.Limit)
	return r, err
}

func (k plainKubernetes) Count(_ context.Context, prefix string, _ kubernetes.CountOptions) (int64, error) {
	_, count, _, err := k.kv.read(0, prefix, prefixEnd(prefix), 0)
	return count, err
}

func (k plainKubernetes) OptimisticPut(_ context.Context, key string, value []byte, expect int64, o kubernetes.PutOptions) (r kubernetes.PutResponse, err error) {
	old, ok, rev := k.kv.write(key, value, expect)
	r.Succeeded, r.Revision = ok, rev
	if !ok && o.GetOnFailure {
		r.KV = old
	}
	return r, nil
}

func (k plainKubernetes) OptimisticDelete(_ context.Context, key string, expect int64, o kubernetes.DeleteOptions) (r kubernetes.DeleteResponse, err error) {
	old, ok, rev := k.kv.write(key, nil, expect)
	r.Succeeded, r.Revision = ok, rev
	if !ok && o.GetOnFailure {
		r.KV = old
	}
	return r, nil
}
