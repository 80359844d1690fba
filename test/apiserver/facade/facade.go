// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

const (
	// Endpoint is the address clients must name. Nothing is ever dialled there.
	Endpoint = "http://wherry.invalid:2379"
	// version is what Status claims. Clients derive features from it: the newest etcd the client library was made for.
	version = "3.7.0"

	bufferBytes    = 256 << 10 // of one in-memory connection
	maxUnexpected  = 100       // how many refused calls are remembered
	maxMessageSize = 4 << 20   // the largest request accepted; etcd's clients send at most 2 MiB
)

// Store is what the facade needs of a store. All methods may be called at the same time.
type Store interface {
	// Get returns a key's value and the revision of its last write; revision 0 means there is no such key.
	Get(ctx context.Context, key string) (value []byte, revision int64, err error)
	// Put writes a key if the revision of its last write is still the given one (0: if there is no such key).
	// It returns the new revision, and false if the condition did not hold.
	Put(ctx context.Context, key string, value []byte, revision int64) (written int64, ok bool, err error)
	// Delete removes a key under the same condition.
	Delete(ctx context.Context, key string, revision int64) (written int64, ok bool, err error)
	// Revision returns the store's newest revision.
	Revision() int64
}

// Facade is the server. Make it with New, hand Dial to the clients, end it with Stop.
type Facade struct {
	store    Store
	keys     []string
	listener *bufconn.Listener
	server   *grpc.Server
	done     sync.WaitGroup

	mu         sync.Mutex // guards what follows
	unexpected []string
	calls      map[string]int
}

// New starts a facade that lets clients read and write the given keys of the store.
func New(store Store, keys ...string) *Facade {
	f := &Facade{store: store, keys: keys, listener: bufconn.Listen(bufferBytes), calls: map[string]int{}}
	f.server = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessageSize),
		grpc.UnaryInterceptor(f.count),
		grpc.StreamInterceptor(func(_ any, _ grpc.ServerStream, info *grpc.StreamServerInfo, _ grpc.StreamHandler) error {
			return f.refuse("%s", info.FullMethod)
		}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			return f.refuse("%s", method)
		}),
	)
	etcd.RegisterKVServer(f.server, &keyValue{facade: f})
	etcd.RegisterMaintenanceServer(f.server, &maintenance{facade: f})
	f.done.Go(func() { _ = f.server.Serve(f.listener) })
	return f
}

// Dial connects a client. It has the shape of net.Dialer.DialContext; network and address do not matter.
func (f *Facade) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return f.listener.DialContext(ctx)
}

// Stop ends the facade and waits for it. Calls under way fail.
func (f *Facade) Stop() {
	f.server.Stop()
	f.done.Wait()
}

// Unexpected returns the calls that were refused because they are not on the list, in the order they came.
func (f *Facade) Unexpected() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.unexpected)
}

// Calls returns how often each method was called.
func (f *Facade) Calls() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[string]int, len(f.calls))
	for k, v := range f.calls {
		out[k] = v
	}
	return out
}

// methods is the list: everything else is refused before it is looked at.
var methods = []string{
	etcd.KV_Range_FullMethodName,
	etcd.KV_Txn_FullMethodName,
	etcd.Maintenance_Status_FullMethodName,
}

func (f *Facade) count(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if !slices.Contains(methods, info.FullMethod) {
		return nil, f.refuse("%s", info.FullMethod)
	}
	f.mu.Lock()
	f.calls[info.FullMethod]++
	f.mu.Unlock()
	return next(ctx, req)
}

func (f *Facade) refuse(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	f.mu.Lock()
	if len(f.unexpected) < maxUnexpected {
		f.unexpected = append(f.unexpected, call)
	}
	f.mu.Unlock()
	return status.Error(codes.Unimplemented, "no etcd here; this call is not answered: "+call)
}

func (f *Facade) header() *etcd.ResponseHeader {
	return &etcd.ResponseHeader{ClusterId: 1, MemberId: 1, RaftTerm: 1, Revision: f.store.Revision()}
}
