// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// memFS is a file system in memory that can fail and that knows what a power cut would leave of it.
type memFS struct {
	mu    sync.Mutex
	names map[string]*memFile // as the process sees them
	kept  map[string]*memFile // as the disk has them: the entries of the last SyncDir
	moves []move              // since then
	calls int
	// fail, if set, is asked before each call that changes or syncs something. short makes a write stop half-way.
	fail func(call int, what, name string) (err error, short bool)
	held bool
	trip bool // only the first failure counts: later calls work
}

type memFile struct {
	data    []byte
	synced  []byte
	pending []patch // writes and truncations since the last sync
}

// patch is a write, or a truncation if data is nil.
type patch struct {
	at   int64
	data []byte
}

// move is a change of a folder: to is empty for a removal, from is empty for a creation.
type move struct {
	from, to string
	file     *memFile
}

func newMemFS() *memFS {
	return &memFS{names: make(map[string]*memFile), kept: make(map[string]*memFile)}
}

func (m *memFS) step(what, name string) (error, bool) {
	m.calls++
	if m.fail == nil {
		return nil, false
	}
	err, short := m.fail(m.calls, what, name)
	if err != nil {
		err = fmt.Errorf("%s %s: %w", what, filepath.Base(name), err)
	}
	return err, short
}

func (m *memFS) MkdirAll(string) error { return nil }

func (m *memFS) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err, _ := m.step("create", name); err != nil {
		return nil, err
	}
	if m.names[name] != nil {
		return nil, fs.ErrExist
	}
	f := &memFile{}
	m.names[name] = f
	m.moves = append(m.moves, move{to: name, file: f})
	return &memHandle{fs: m, file: f, name: name}, nil
}

func (m *memFS) Open(name string, _ bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[name] == nil {
		return nil, fs.ErrNotExist
	}
	return &memHandle{fs: m, file: m.names[name], name: name}, nil
}

func (m *memFS) Names(string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.names {
		names = append(names, filepath.Base(name))
	}
	slices.Sort(names)
	return names, nil
}

func (m *memFS) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err, _ := m.step("rename", from); err != nil {
		return err
	}
	f := m.names[from]
	if f == nil {
		return fs.ErrNotExist
	}
	delete(m.names, from)
	m.names[to] = f
	m.moves = append(m.moves, move{from: from, to: to, file: f})
	return nil
}

func (m *memFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err, _ := m.step("remove", name); err != nil {
		return err
	}
	if m.names[name] == nil {
		return fs.ErrNotExist
	}
	delete(m.names, name)
	m.moves = append(m.moves, move{from: name})
	return nil
}

func (m *memFS) SyncDir(string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err, _ := m.step("syncdir", ""); err != nil {
		return err
	}
	m.kept = maps.Clone(m.names)
	m.moves = nil
	return nil
}

func (m *memFS) Lock(dir string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held {
		return nil, &InUseError{Dir: dir}
	}
	m.held = true
	return m, nil
}

// Close gives the lock back.
func (m *memFS) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = false
	return nil
}

// killed gives what the next process finds after a kill -9: everything that was written.
func (m *memFS) killed() *memFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := newMemFS()
	for name, f := range m.names {
		c := &memFile{data: slices.Clone(f.data), synced: slices.Clone(f.data)}
		next.names[name], next.kept[name] = c, c
	}
	return next
}

// powerCut gives what may be left after a power cut: what was synced, and of the rest whatever rng picks, in pieces
// of one sector. Changes of the folder are left from the first on, as a journal keeps them.
func (m *memFS) powerCut(rng *rand.Rand) *memFS {
	const sector = 512
	m.mu.Lock()
	defer m.mu.Unlock()
	names := maps.Clone(m.kept)
	for _, mv := range m.moves[:rng.Intn(len(m.moves)+1)] {
		if mv.from != "" {
			delete(names, mv.from)
		}
		if mv.to != "" {
			names[mv.to] = mv.file
		}
	}
	next := newMemFS()
	for name, f := range names {
		data := slices.Clone(f.synced)
		all, none := rng.Intn(4) == 0, rng.Intn(4) == 0
		for _, p := range f.pending {
			if p.data == nil {
				if all || !none && rng.Intn(2) == 0 {
					data = resize(data, p.at)
				}
				continue
			}
			for at := int64(0); at < int64(len(p.data)); {
				end := min((p.at+at)/sector*sector+sector-p.at, int64(len(p.data)))
				if all || !none && rng.Intn(2) == 0 {
					if need := p.at + end; int64(len(data)) < need {
						data = resize(data, need)
					}
					copy(data[p.at+at:], p.data[at:end])
				}
				at = end
			}
		}
		c := &memFile{data: data, synced: slices.Clone(data)}
		next.names[name], next.kept[name] = c, c
	}
	return next
}

func resize(b []byte, size int64) []byte {
	if int64(len(b)) >= size {
		return b[:size:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

// only gives the files whose name begins with prefix, in order.
func (m *memFS) only(prefix string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range m.names {
		if strings.HasPrefix(filepath.Base(name), prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

type memHandle struct {
	fs   *memFS
	file *memFile
	name string
}

func (h *memHandle) ReadAt(b []byte, at int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if at >= int64(len(h.file.data)) {
		return 0, io.EOF
	}
	n := copy(b, h.file.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *memHandle) WriteAt(b []byte, at int64) (int, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	err, short := h.fs.step("write", h.name)
	if err != nil && !short {
		return 0, err
	}
	if short {
		b = b[:len(b)/2]
	}
	if need := at + int64(len(b)); int64(len(h.file.data)) < need {
		h.file.data = resize(h.file.data, need)
	}
	copy(h.file.data[at:], b)
	h.file.pending = append(h.file.pending, patch{at, slices.Clone(b)})
	return len(b), err
}

func (h *memHandle) Close() error { return nil }

func (h *memHandle) Size() (int64, error) {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	return int64(len(h.file.data)), nil
}

func (h *memHandle) Sync() error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err, _ := h.fs.step("sync", h.name); err != nil {
		// What a kernel does after a failed fsync: it forgets that there was something to write.
		h.file.pending = nil
		return err
	}
	h.file.synced = slices.Clone(h.file.data)
	h.file.pending = nil
	return nil
}

func (h *memHandle) Truncate(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err, _ := h.fs.step("truncate", h.name); err != nil {
		return err
	}
	h.file.data = resize(h.file.data, size)
	h.file.pending = append(h.file.pending, patch{at: size})
	return nil
}

func (h *memHandle) Reserve(size int64) error {
	h.fs.mu.Lock()
	defer h.fs.mu.Unlock()
	if err, _ := h.fs.step("reserve", h.name); err != nil {
		return err
	}
	// A small stand-in for the megabytes a real disk reserves, so that tests stay fast.
	const most = 64 << 10
	if size = min(size, int64(len(h.file.data))+most); int64(len(h.file.data)) < size {
		h.file.data = resize(h.file.data, size)
		h.file.pending = append(h.file.pending, patch{at: size})
	}
	return nil
}

var errDevice = errors.New("input/output error")
