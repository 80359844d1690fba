// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"maps"
	"sync"
	"sync/atomic"
	"unsafe"
)

// readerTable remembers what reads objects and lists of a Go type: at most one reader for each type that the program
// reads. It is read in every cached read and written once for each type, so it is copied when it is written.
type readerTable struct {
	mu    sync.Mutex
	table atomic.Pointer[map[uintptr]Reader] // by the first of words
}

// words are the two words of an interface value: the address of the type's description, which is one for each type and
// stays where it is, and, if the type is a pointer, the pointer.
//
// NB: unsafe, because through package reflect the two cost more than the rest of the look-up.
func words(obj any) (typ, ptr uintptr) {
	w := *(*[2]uintptr)(unsafe.Pointer(&obj))
	return w[0], w[1]
}

// of returns the reader for obj's Go type, or nil if there is none or obj is nil or a nil pointer.
func (t *readerTable) of(obj any) Reader {
	typ, ptr := words(obj)
	table := t.table.Load()
	if table == nil || ptr == 0 {
		return nil
	}
	return (*table)[typ]
}

// remember binds obj's Go type, a pointer's, to r.
func (t *readerTable) remember(obj any, r Reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := map[uintptr]Reader{}
	if table := t.table.Load(); table != nil {
		next = maps.Clone(*table)
	}
	typ, _ := words(obj)
	next[typ] = r
	t.table.Store(&next)
}
