// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type keyValue struct {
	etcd.UnimplementedKVServer
	facade *Facade
}

// Range answers the read of one key at its newest revision.
func (k *keyValue) Range(ctx context.Context, r *etcd.RangeRequest) (*etcd.RangeResponse, error) {
	key := string(r.Key)
	if len(r.RangeEnd) > 0 || r.Revision != 0 || !slices.Contains(k.facade.keys, key) {
		return nil, k.facade.refuse("Range key=%q end=%q revision=%d", key, r.RangeEnd, r.Revision)
	}
	return k.read(ctx, key)
}

func (k *keyValue) read(ctx context.Context, key string) (*etcd.RangeResponse, error) {
	out := &etcd.RangeResponse{Header: k.facade.header()}
	value, revision, err := k.facade.store.Get(ctx, key)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	if revision == 0 {
		return out, nil
	}
	out.Count = 1
	// The header must not lag behind what it heads: the key may have been written since.
	out.Header.Revision = max(out.Header.Revision, revision)
	out.Kvs = []*mvccpb.KeyValue{{Key: []byte(key), Value: value, ModRevision: revision, CreateRevision: revision, Version: 1}}
	return out, nil
}

// Txn answers one conditional write of one key: if its last write is still the expected one, put or delete it, else
// read it.
func (k *keyValue) Txn(ctx context.Context, r *etcd.TxnRequest) (*etcd.TxnResponse, error) {
	key, revision, ok := condition(r)
	if !ok || !slices.Contains(k.facade.keys, key) {
		return nil, k.facade.refuse("Txn %v", r)
	}
	if len(r.Failure) > 0 {
		get := r.Failure[0].GetRequestRange()
		if len(r.Failure) > 1 || get == nil || string(get.Key) != key || len(get.RangeEnd) > 0 {
			return nil, k.facade.refuse("Txn %v", r)
		}
	}
	var (
		written int64
		done    bool
		err     error
		answer  *etcd.ResponseOp
	)
	switch put, del := r.Success[0].GetRequestPut(), r.Success[0].GetRequestDeleteRange(); {
	case put != nil && string(put.Key) == key && put.Lease == 0:
		written, done, err = k.facade.store.Put(ctx, key, put.Value, revision)
		answer = &etcd.ResponseOp{Response: &etcd.ResponseOp_ResponsePut{ResponsePut: &etcd.PutResponse{Header: k.facade.header()}}}
	case del != nil && string(del.Key) == key && len(del.RangeEnd) == 0:
		written, done, err = k.facade.store.Delete(ctx, key, revision)
		answer = &etcd.ResponseOp{Response: &etcd.ResponseOp_ResponseDeleteRange{
			ResponseDeleteRange: &etcd.DeleteRangeResponse{Header: k.facade.header(), Deleted: 1},
		}}
	default:
		return nil, k.facade.refuse("Txn %v", r)
	}
	switch {
	case err != nil:
		return nil, status.Error(codes.Unavailable, err.Error())
	case done:
		out := &etcd.TxnResponse{Header: k.facade.header(), Succeeded: true, Responses: []*etcd.ResponseOp{answer}}
		// The caller takes the header's revision for the key's own: the store may have moved on since.
		out.Header.Revision = written
		return out, nil
	}
	out := &etcd.TxnResponse{Header: k.facade.header()}
	if len(r.Failure) > 0 {
		now, err := k.read(ctx, key)
		if err != nil {
			return nil, err
		}
		out.Header.Revision = max(out.Header.Revision, now.Header.Revision)
		out.Responses = []*etcd.ResponseOp{{Response: &etcd.ResponseOp_ResponseRange{ResponseRange: now}}}
	}
	return out, nil
}

// condition returns the key a transaction is about and the revision it expects, and whether it has the one shape
// that is answered.
func condition(r *etcd.TxnRequest) (key string, revision int64, ok bool) {
	if len(r.Compare) != 1 || len(r.Success) != 1 {
		return "", 0, false
	}
	c := r.Compare[0]
	if c.Target != etcd.Compare_MOD || c.Result != etcd.Compare_EQUAL || len(c.RangeEnd) > 0 {
		return "", 0, false
	}
	return string(c.Key), c.GetModRevision(), true
}

type maintenance struct {
	etcd.UnimplementedMaintenanceServer
	facade *Facade
}

// Status tells a version, which decides what features clients use. The size of the database, which becomes a metric, is
// left at zero: there is no database to speak of.
func (m *maintenance) Status(context.Context, *etcd.StatusRequest) (*etcd.StatusResponse, error) {
	return &etcd.StatusResponse{
		Header: m.facade.header(), Version: version, Leader: 1, RaftTerm: 1, RaftIndex: 1,
		RaftAppliedIndex: 1,
	}, nil
}
