// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// StorageOptions say how one resource is kept.
type StorageOptions struct {
	// Codec turns objects into what is stored, and back. It is needed.
	Codec runtime.Codec
	// Transformer stands between Codec and store, as encryption does. Nil means nothing does.
	Transformer value.Transformer
	// Prefix stands before every key. Empty means "/".
	Prefix string
	// ResourcePrefix is where the resource's keys begin, behind Prefix. It begins with "/" and is needed.
	ResourcePrefix string
	// GroupResource names the resource in errors and metrics.
	GroupResource schema.GroupResource
	// NewFunc makes an empty object. Without one, objects are not shared and there are no bookmarks.
	NewFunc func() runtime.Object
}

// Storage is storage.Interface for one resource of a [Store].
//
// What GetList puts into a list and what a watch sends is shared with other readers and must not be changed; what
// Get, Create, Update and Delete give is the caller's. Suggestions of a cached object are ignored: the store reads
// from memory, so its own answer is as fast and never stale.
type Storage struct {
	store     *Store
	opts      StorageOptions
	prefix    string
	versioner storage.Versioner
	share     bool

	way      atomic.Pointer[way]
	decoding [32]sync.Mutex // so that a version is decoded once, not once per watcher
}

// way is how values are read now.
type way struct {
	scope       *scope
	transformer value.Transformer
	plain       bool // the transformer does nothing
}

var _ storage.Interface = (*Storage)(nil)

// NewStorage gives the storage of one resource. It starts nothing; Destroy ends what it shares.
func NewStorage(s *Store, o StorageOptions) (*Storage, error) {
	switch {
	case o.Codec == nil:
		return nil, errors.New("new storage: no codec")
	case !strings.HasPrefix(o.ResourcePrefix, "/") || o.ResourcePrefix == "/":
		return nil, fmt.Errorf("new storage: resource prefix %q must begin with / and name a resource", o.ResourcePrefix)
	}
	st := &Storage{store: s, opts: o, versioner: storage.APIObjectVersioner{}}
	st.prefix = path.Join("/", o.Prefix)
	if !strings.HasSuffix(st.prefix, "/") {
		st.prefix += "/"
	}
	st.share = o.NewFunc != nil && !s.opts.NoSharing
	if o.Transformer != nil && unsafeDeletionAllowed() {
		o.Transformer = tellingTransformer{o.Transformer}
	}
	st.setTransformer(o.Transformer)
	return st, nil
}

// setTransformer changes how values are read and written from now on.
func (st *Storage) setTransformer(t value.Transformer) {
	if t == nil {
		t = identity.NewEncryptCheckTransformer()
	}
	next := &way{scope: new(scope), transformer: t, plain: reflect.TypeOf(t) == identityType}
	if old := st.way.Swap(next); old != nil {
		old.scope.closed.Store(true)
	}
}

var identityType = reflect.TypeOf(identity.NewEncryptCheckTransformer())

// Destroy lets go of the decoded objects. The Storage must not be used afterwards.
func (st *Storage) Destroy() { st.way.Load().scope.closed.Store(true) }

// Versioner implements storage.Interface.
func (st *Storage) Versioner() storage.Versioner { return st.versioner }

// Count gives the number of objects under key, a path prefix below the resource's.
func (st *Storage) Count(key string) (int64, error) {
	prefix, err := st.key(key, true)
	if err != nil {
		return 0, err
	}
	v, err := st.store.viewAt(0, prefix)
	if err != nil {
		return 0, err
	}
	return int64(v.root.within(prefix, "").count), nil
}

// Stats tells how many objects the resource has and how large they are on average. Both are exact.
func (st *Storage) Stats(context.Context) (storage.Stats, error) {
	prefix, err := st.key(st.opts.ResourcePrefix, true)
	if err != nil {
		return storage.Stats{}, err
	}
	v, err := st.store.viewAt(0, prefix)
	if err != nil {
		return storage.Stats{}, err
	}
	sum := v.root.within(prefix, "")
	if sum.count == 0 {
		return storage.Stats{}, nil
	}
	return storage.Stats{ObjectCount: int64(sum.count), EstimatedAverageObjectSizeBytes: sum.bytes / int64(sum.count)}, nil
}

// ReadinessCheck fails when the store takes no writes any more, and says why.
func (st *Storage) ReadinessCheck() error {
	if err := st.store.Failure(); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrStorageNotReady, err)
	}
	return nil
}

// GetCurrentResourceVersion gives the revision of the last write to any resource.
func (st *Storage) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return uint64(st.store.Revision()), nil
}

// EnableResourceSizeEstimation does nothing: Stats is exact without it.
func (st *Storage) EnableResourceSizeEstimation(keys storage.KeysFunc) error {
	if keys == nil {
		return errors.New("no function to give the keys")
	}
	return nil
}

// CompactRevision gives the oldest revision a watch can start from, or 0 if nothing has been forgotten yet.
func (st *Storage) CompactRevision() int64 {
	if floor := st.store.CompactRevision(); floor > firstRevision {
		return floor
	}
	return 0
}

// key gives the store's key for a key of the interface.
func (st *Storage) key(key string, recursive bool) (string, error) {
	key, err := storage.PrepareKey(st.opts.ResourcePrefix, key, recursive)
	if err != nil {
		return "", err
	}
	return st.prefix + strings.TrimPrefix(key, "/"), nil
}

// dataContext ties an encrypted value to its key.
type dataContext string

func (c dataContext) AuthenticatedData() []byte { return []byte(c) }

// open turns what is stored into what the codec reads.
func (w *way) open(ctx context.Context, key string, stored []byte) (data []byte, stale bool, err error) {
	if w.plain {
		return stored, false, nil
	}
	if data, stale, err = w.transformer.TransformFromStorage(ctx, stored, dataContext(key)); err != nil {
		return nil, false, transformFailed(key, err)
	}
	return data, stale, nil
}

// decode makes a fresh object of a value.
func (st *Storage) decode(data []byte, rev int64) (runtime.Object, error) {
	var obj runtime.Object
	var err error
	if st.opts.NewFunc != nil {
		obj, _, err = st.opts.Codec.Decode(data, nil, st.opts.NewFunc())
	} else {
		obj, err = runtime.Decode(st.opts.Codec, data)
	}
	if err != nil {
		return nil, decodeFailed(rev, err)
	}
	return obj, nil
}

// setRevision is decode's second half. An object that takes no revision is still an object.
func (st *Storage) setRevision(obj runtime.Object, rev int64) error {
	return st.versioner.UpdateObject(obj, uint64(rev))
}

// shared gives the decoded form of a value at a revision, which the caller must not change. The cell is the value's.
func (st *Storage) shared(ctx context.Context, c *cell, key string, stored []byte, rev int64) (*object, error) {
	w := st.way.Load()
	if st.share {
		if o := c.find(w.scope); o != nil {
			if !o.unchanged() {
				return nil, fmt.Errorf("a reader changed the shared object %s", key)
			}
			return o, nil
		}
		lock := &st.decoding[uint64(rev)%uint64(len(st.decoding))]
		lock.Lock()
		defer lock.Unlock()
		if o := c.find(w.scope); o != nil {
			return o, nil
		}
	}
	data, _, err := w.open(ctx, key, stored)
	if err != nil {
		return nil, err
	}
	obj, err := st.decode(data, rev)
	if err != nil {
		return nil, err
	}
	_ = st.setRevision(obj, rev)
	o := st.newObject(w.scope, obj)
	if st.share {
		c.add(o)
	}
	return o, nil
}

func (st *Storage) newObject(s *scope, obj runtime.Object) *object {
	o := &object{scope: s, value: obj, version: st.setRevision}
	if st.store.opts.Check {
		o.pristine = obj.DeepCopyObject()
	}
	return o
}

func (st *Storage) sharedVersion(ctx context.Context, v *version) (*object, error) {
	return st.shared(ctx, &v.objects, v.key, v.value, v.mod)
}

// assign puts a version into out, for the caller to keep.
func (st *Storage) assign(ctx context.Context, v *version, out runtime.Object) error {
	if st.share {
		if o, err := st.sharedVersion(ctx, v); err != nil {
			return st.readError(v.key, err)
		} else if copyInto(out, o.value) {
			return nil
		}
	}
	data, _, err := st.way.Load().open(ctx, v.key, v.value)
	if err != nil {
		return st.readError(v.key, err)
	}
	return st.readError(v.key, st.decodeInto(data, out, v.mod))
}

// assignData is assign for a caller who has the version's data at hand.
func (st *Storage) assignData(v *version, data []byte, out runtime.Object) error {
	if o := v.objects.find(st.way.Load().scope); o != nil && copyInto(out, o.value) {
		return nil
	}
	return st.decodeInto(data, out, v.mod)
}

// copyInto puts a deep copy of a shared object into out, if out is of its type.
func copyInto(out, shared runtime.Object) bool {
	target, source := reflect.ValueOf(out), reflect.ValueOf(shared)
	if target.Type() != source.Type() || target.Kind() != reflect.Pointer || target.IsNil() {
		return false
	}
	target.Elem().Set(reflect.ValueOf(shared.DeepCopyObject()).Elem())
	return true
}

// decodeInto fills out, whatever its type.
func (st *Storage) decodeInto(data []byte, out runtime.Object, rev int64) error {
	if _, _, err := st.opts.Codec.Decode(data, nil, out); err != nil {
		return decodeFailed(rev, err)
	}
	_ = st.setRevision(out, rev)
	return nil
}

// atLeast checks that a reader who asks for nothing older than minimum gets that.
func (st *Storage) atLeast(minimum string, rev int64) error {
	if minimum == "" {
		return nil
	}
	want, err := st.versioner.ParseResourceVersion(minimum)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if want > uint64(rev) {
		return storage.NewTooLargeResourceVersionError(want, uint64(rev), 0)
	}
	return nil
}

func unsafeDeletionAllowed() bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion)
}
