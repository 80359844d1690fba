// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package facade_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/wherry-dev/wherry/test/apiserver/facade"
)

const key = "/registry/ranges/servicenodeports"

// memory is the smallest store that meets facade.Store.
type memory struct {
	mu       sync.Mutex
	revision int64
	values   map[string][]byte
	written  map[string]int64
}

func newMemory() *memory {
	return &memory{revision: 1, values: map[string][]byte{}, written: map[string]int64{}}
}

func (m *memory) Get(_ context.Context, key string) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], m.written[key], nil
}

func (m *memory) Put(_ context.Context, key string, value []byte, revision int64) (int64, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.written[key] != revision {
		return 0, false, nil
	}
	m.revision++
	m.values[key], m.written[key] = value, m.revision
	return m.revision, true, nil
}

func (m *memory) Delete(_ context.Context, key string, revision int64) (int64, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if revision == 0 || m.written[key] != revision {
		return 0, false, nil
	}
	m.revision++
	delete(m.values, key)
	delete(m.written, key)
	return m.revision, true, nil
}

func (m *memory) Revision() int64 { m.mu.Lock(); defer m.mu.Unlock(); return m.revision }

// connect starts a facade and the very client kube-apiserver uses.
func connect(t *testing.T) (*facade.Facade, *kubernetes.Client) {
	t.Helper()
	f := facade.New(newMemory(), key)
	t.Cleanup(f.Stop)
	client, err := kubernetes.New(clientv3.Config{
		Endpoints: []string{facade.Endpoint},
		Logger:    zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return f.Dial(ctx, "tcp", addr)
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return f, client
}

func TestAllocatorCalls(t *testing.T) {
	f, c := connect(t)
	ctx := t.Context()

	got, err := c.Kubernetes.Get(ctx, key, kubernetes.GetOptions{})
	if err != nil || got.KV != nil || got.Revision != 1 {
		t.Fatalf("read of an absent key: %+v, %v; want nothing at revision 1", got, err)
	}
	put, err := c.Kubernetes.OptimisticPut(ctx, key, []byte("one"), 0, kubernetes.PutOptions{GetOnFailure: true})
	if err != nil || !put.Succeeded || put.Revision != 2 {
		t.Fatalf("first write: %+v, %v; want success at revision 2", put, err)
	}
	put, err = c.Kubernetes.OptimisticPut(ctx, key, []byte("two"), 1, kubernetes.PutOptions{GetOnFailure: true})
	if err != nil || put.Succeeded || put.KV == nil || string(put.KV.Value) != "one" || put.KV.ModRevision != 2 {
		t.Fatalf("write over a stale revision: %+v, %v; want a refusal with the value of revision 2", put, err)
	}
	put, err = c.Kubernetes.OptimisticPut(ctx, key, []byte("two"), 2, kubernetes.PutOptions{})
	if err != nil || !put.Succeeded || put.Revision != 3 {
		t.Fatalf("second write: %+v, %v; want success at revision 3", put, err)
	}
	got, err = c.Kubernetes.Get(ctx, key, kubernetes.GetOptions{})
	if err != nil || got.KV == nil || string(got.KV.Value) != "two" || got.KV.ModRevision != 3 {
		t.Fatalf("read: %+v, %v; want the value of revision 3", got, err)
	}
	del, err := c.Kubernetes.OptimisticDelete(ctx, key, 3, kubernetes.DeleteOptions{})
	if err != nil || !del.Succeeded || del.Revision != 4 {
		t.Fatalf("delete: %+v, %v; want success at revision 4", del, err)
	}
	if s, err := c.Status(ctx, facade.Endpoint); err != nil || s.Version == "" {
		t.Fatalf("status: %+v, %v; want a version", s, err)
	}
	if u := f.Unexpected(); len(u) > 0 {
		t.Fatalf("the allocator's own calls were refused: %v", u)
	}
}

func TestCallsOffTheListAreRefusedAndRemembered(t *testing.T) {
	for name, tc := range map[string]struct {
		call func(context.Context, *kubernetes.Client) error
		want string
	}{
		"another key": {func(ctx context.Context, c *kubernetes.Client) error {
			_, err := c.KV.Get(ctx, "/registry/pods/a")
			return err
		}, `key="/registry/pods/a"`},
		"a range": {func(ctx context.Context, c *kubernetes.Client) error {
			_, err := c.KV.Get(ctx, key, clientv3.WithPrefix())
			return err
		}, "end="},
		"an old revision": {func(ctx context.Context, c *kubernetes.Client) error {
			_, err := c.KV.Get(ctx, key, clientv3.WithRev(1))
			return err
		}, "revision=1"},
		"a plain write": {func(ctx context.Context, c *kubernetes.Client) error {
			_, err := c.KV.Put(ctx, key, "x")
			return err
		}, "KV/Put"},
		"a lease": {func(ctx context.Context, c *kubernetes.Client) error {
			_, err := c.Grant(ctx, 10)
			return err
		}, "LeaseGrant"},
		"a write under a lease": {func(ctx context.Context, c *kubernetes.Client) error {
			_, err := c.Kubernetes.OptimisticPut(ctx, key, []byte("x"), 0, kubernetes.PutOptions{LeaseID: 7})
			return err
		}, "Txn"},
		"a transaction on two keys": {func(ctx context.Context, c *kubernetes.Client) error {
			_, err := c.KV.Txn(ctx).Then(clientv3.OpPut(key, "x"), clientv3.OpPut("/other", "x")).Commit()
			return err
		}, "Txn"},
		"a compaction": {func(ctx context.Context, c *kubernetes.Client) error {
			_, err := c.KV.Compact(ctx, 1)
			return err
		}, "KV/Compact"},
	} {
		t.Run(name, func(t *testing.T) {
			f, c := connect(t)
			if err := tc.call(t.Context(), c); err == nil {
				t.Fatal("the call went through")
			}
			u := f.Unexpected()
			if len(u) != 1 || !strings.Contains(u[0], tc.want) {
				t.Fatalf("refused calls %q; want one that has %q", u, tc.want)
			}
		})
	}
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	_, c := connect(t)
	const writers, each = 8, 25
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				for {
					now, err := c.Kubernetes.Get(t.Context(), key, kubernetes.GetOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					var value []byte
					var revision int64
					if now.KV != nil {
						value, revision = now.KV.Value, now.KV.ModRevision
					}
					put, err := c.Kubernetes.OptimisticPut(t.Context(), key, append(value, 'x'), revision, kubernetes.PutOptions{})
					if err != nil {
						t.Error(err)
						return
					}
					if put.Succeeded {
						break
					}
				}
			}
		})
	}
	all.Wait()
	got, err := c.Kubernetes.Get(t.Context(), key, kubernetes.GetOptions{})
	if err != nil || len(got.KV.Value) != writers*each {
		t.Fatalf("%d writes left %d; %v", writers*each, len(got.KV.Value), err)
	}
}
