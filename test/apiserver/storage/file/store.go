// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Store holds every object of one API server. All methods may be called from any goroutine.
type Store struct {
	opts Options

	mu      sync.RWMutex // guards the fields of this group; writers of them are the leader of the queue
	tree    tree
	rev     int64
	history history
	hub     hub

	queue   queue
	log     *log // nil in Memory mode
	lock    io.Closer
	expiry  expiry
	failure atomic.Pointer[failure]
	notes   []string // what opening found out of order and put right

	untidied     int // events since history was last looked at; the leader's
	snapshotting atomic.Bool
	retryAt      int64 // log size at which a failed snapshot is tried again; the leader's

	ctx     context.Context // ends when the store closes
	stop    context.CancelFunc
	working sync.Mutex     // orders spawn and Close
	work    sync.WaitGroup // every goroutine the store started
	once    sync.Once
	err     error // of the first Close
}

// firstRevision is that of a store in which nothing has been written yet.
const firstRevision = 1

// failure is why a store writes no more.
type failure struct{ err error }

// Open opens the store in o.Dir, or makes one there. The error names the file and, where there is one, the remedy:
// an *[InUseError], a *[CorruptError] or a *[FormatError], or what the file system said.
func Open(o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{opts: o, rev: firstRevision}
	s.history.floor = firstRevision
	s.hub.init()
	s.queue.init()
	s.ctx, s.stop = context.WithCancel(context.Background())
	if o.Mode != Memory {
		if err := s.openFolder(); err != nil {
			s.stop()
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	if o.Check {
		if err := s.Verify(); err != nil {
			s.release()
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	if !o.ReadOnly {
		s.spawn(s.expire)
	}
	return s, nil
}

// spawn starts a goroutine that Close waits for, unless the store is closed.
func (s *Store) spawn(f func()) bool {
	s.working.Lock()
	defer s.working.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	s.work.Go(f)
	return true
}

// release gives back what Open took when it fails late.
func (s *Store) release() {
	s.stop()
	if s.log != nil {
		s.log.abandon()
	}
	if s.lock != nil {
		s.lock.Close()
	}
}

// Close ends every watch, waits for the writes under way and closes the files in good order. Later calls give what
// the first one gave.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.queue.close()
		s.working.Lock()
		s.stop()
		s.working.Unlock()
		s.work.Wait()
		if s.opts.Check {
			s.err = s.Verify()
		}
		if s.log != nil {
			healthy := s.failure.Load() == nil && !s.opts.ReadOnly
			if err := s.log.close(healthy, s.rev, s.now().UnixNano()); s.err == nil {
				s.err = err
			}
		}
		if s.lock != nil {
			if err := s.lock.Close(); s.err == nil {
				s.err = err
			}
		}
	})
	return s.err
}

// Mode gives the mode the store was opened in.
func (s *Store) Mode() Mode { return s.opts.Mode }

// Notes tells what Open found out of order and put right: a torn end of the log, a snapshot that could not be read.
func (s *Store) Notes() []string { return s.notes }

// Failure gives the reason why the store takes no writes, or nil. It never goes away while the store is open: a
// write whose outcome the disk did not confirm cannot be tried again.
func (s *Store) Failure() error {
	if f := s.failure.Load(); f != nil {
		return f.err
	}
	return nil
}

// poison makes the first failure the last word on writing.
func (s *Store) poison(err error) {
	s.failure.CompareAndSwap(nil, &failure{fmt.Errorf("%w: %w", ErrFailed, err)})
}

func (s *Store) now() time.Time { return s.opts.Clock.Now() }

// Revision gives the revision of the last write. A new store starts at 1.
func (s *Store) Revision() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rev
}

// CompactRevision gives the oldest revision from which a watch can start and at which a list can be read.
func (s *Store) CompactRevision() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.history.floor
}

// Size gives the number of keys and of bytes in their values.
func (s *Store) Size() (keys int, bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sum := s.tree.root.within("", "")
	return sum.count, sum.bytes
}

// viewAt gives the store as it was at rev, or as it is if rev is 0. Of a past revision only keys with the prefix may
// be looked at.
func (s *Store) viewAt(rev int64, prefix string) (view, error) {
	s.mu.RLock()
	v := view{root: s.tree.share(), rev: s.rev}
	floor := s.history.floor
	var events []*event
	if rev >= floor && rev < v.rev && rev != 0 {
		events = s.history.after(rev)
	}
	s.mu.RUnlock()
	switch {
	case rev == 0 || rev == v.rev:
		return v, nil
	case rev > v.rev:
		return view{rev: v.rev}, ErrFutureRevision
	case rev < floor:
		return view{rev: v.rev}, ErrCompacted
	}
	v.rewind(rev, prefix, events)
	return v, nil
}

// current gives the present version of a key, or nil, and the revision of the store.
func (s *Store) current(key string) (*version, int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.tree.root.get(key), s.rev
}
