// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scope is one way of decoding: a Storage's codec and transformer. Another Storage for the same keys, as for another
// version of a custom resource, has another scope, and so has the same Storage once its transformer is replaced.
type scope struct {
	closed atomic.Bool
}

// object is a decoded value that all readers of one scope share. Nobody may change what it holds.
type object struct {
	scope    *scope
	value    runtime.Object
	pristine runtime.Object // a copy to compare with, if the store looks for readers who write
	version  func(runtime.Object, int64) error

	mu   sync.Mutex
	wire weak.Pointer[encodings]

	next *object // of another scope
}

// publish completes a freshly made object with its revision and gives it to the version that is about to be
// published.
func (o *object) publish(v *version) {
	// An object that takes no revision is decoded by its readers, who hear why.
	if o.version(o.value, v.mod) == nil {
		if o.pristine != nil {
			o.pristine = o.value.DeepCopyObject()
		}
		v.objects.add(o)
	}
}

// unchanged is the mutation detector. It sees something only in a store opened with Check.
func (o *object) unchanged() bool {
	return o.pristine == nil || equality.Semantic.DeepEqual(o.pristine, o.value)
}

// cell collects the decoded forms of one value.
type cell struct{ first atomic.Pointer[object] }

func (c *cell) find(s *scope) *object {
	for o := c.first.Load(); o != nil; o = o.next {
		if o.scope == s {
			return o
		}
	}
	return nil
}

// add puts o, which is not yet shared, into the cell and drops objects nobody can ask for any more.
func (c *cell) add(o *object) {
	for {
		first := c.first.Load()
		o.next = first
		for o.next != nil && o.next.scope.closed.Load() {
			o.next = o.next.next
		}
		if c.first.CompareAndSwap(first, o) {
			return
		}
	}
}

// encoded gives the object in the form watchers send on: it is encoded once for all who send it in the same way. The
// encodings live as long as somebody is about to send them.
func (o *object) encoded() *encodings {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.wire.Value()
	if e == nil {
		e = &encodings{object: o.value}
		o.wire = weak.Make(e)
	}
	return e
}

// encodings is a shared object together with its wire forms.
type encodings struct {
	object runtime.Object

	mu    sync.Mutex
	forms []*encoding
}

var (
	_ runtime.CacheableObject   = (*encodings)(nil)
	_ metav1.ObjectMetaAccessor = (*encodings)(nil)
)

type encoding struct {
	id   runtime.Identifier
	once sync.Once
	data []byte
	err  error
}

// CacheEncode writes the object as encode would, calling encode once per id.
func (e *encodings) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	f := e.form(id)
	f.once.Do(func() {
		var buf bytes.Buffer
		f.err = encode(e.GetObject(), &buf)
		f.data = buf.Bytes()
	})
	if f.err != nil {
		return f.err
	}
	_, err := w.Write(f.data)
	return err
}

func (e *encodings) form(id runtime.Identifier) *encoding {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.forms {
		if f.id == id {
			return f
		}
	}
	f := &encoding{id: id}
	e.forms = append(e.forms, f)
	return f
}

// GetObject gives a copy, which is the caller's.
func (e *encodings) GetObject() runtime.Object { return e.object.DeepCopyObject() }

// DeepCopyObject gives a copy of the object itself.
func (e *encodings) DeepCopyObject() runtime.Object { return e.object.DeepCopyObject() }

// GetObjectKind gives the shared object's kind, to be read only.
func (e *encodings) GetObjectKind() schema.ObjectKind { return e.object.GetObjectKind() }

// GetObjectMeta gives the shared object's metadata, to be read only. It is nil for an object that has none.
func (e *encodings) GetObjectMeta() metav1.Object {
	m, err := meta.Accessor(e.object)
	if err != nil {
		return nil
	}
	return m
}
