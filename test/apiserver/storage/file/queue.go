// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"sync"
)

// request is what one caller wants written: its writes happen together or not at all.
type request struct {
	ctx    context.Context
	writes []write
	// alone, if set, is run by the leader between two batches in place of writes.
	alone func() error

	turn    chan struct{} // receives once: the request is done, or it is its caller's turn to lead
	done    bool          // set before turn receives, if the request is done
	err     error
	rev     int64    // revision of the last write
	applied bool     // whether the conditions held
	current *version // if they did not: what the first one that failed met, nil if there was no such key
	made    *version // the last version a write made, nil if it was a delete
}

// write is one operation with its condition.
type write struct {
	op
	// expect is the revision the key must have been written at; 0 demands that there is no such key, anyRevision
	// nothing.
	expect int64
	// object is the decoded value, to be shared with readers. It is complete but for the revision.
	object *object
}

// anyRevision makes a write unconditional.
const anyRevision = -1

// queue lets the callers themselves do the writing: whoever comes while nobody leads becomes the leader, writes for
// all who wait, and hands on to the first of those who came meanwhile. So a lone writer never changes goroutines, and
// many writers share one fsync.
type queue struct {
	mu      sync.Mutex
	idle    *sync.Cond
	pending []*request
	leading bool
	closed  bool
}

func (q *queue) init() { q.idle = sync.NewCond(&q.mu) }

// close refuses new requests and waits for those under way.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for q.leading {
		q.idle.Wait()
	}
}

// do runs the request and fills in its result.
func (s *Store) do(r *request) error {
	if s.opts.ReadOnly {
		if err := s.Failure(); err != nil {
			return refused(err)
		}
		return refused(ErrReadOnly)
	}
	q := &s.queue
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return refused(ErrClosed)
	}
	q.pending = append(q.pending, r)
	if q.leading {
		r.turn = make(chan struct{}, 1)
		q.mu.Unlock()
		<-r.turn // at most two commits away
		if r.done {
			return r.err
		}
		q.mu.Lock()
	}
	q.leading = true
	batch := q.take()
	q.mu.Unlock()

	s.commit(batch)
	for _, other := range batch {
		if other != r {
			other.done = true
			other.turn <- struct{}{}
		}
	}

	q.mu.Lock()
	if len(q.pending) > 0 {
		q.pending[0].turn <- struct{}{}
	} else {
		q.leading = false
		q.idle.Broadcast()
	}
	q.mu.Unlock()
	return r.err
}

// take gives the requests to be written next, at least one. A request that wants to be alone is.
func (q *queue) take() []*request {
	bytes, n := 0, 0
	for _, r := range q.pending {
		if n > 0 && (r.alone != nil || bytes > maxBatchBytes) {
			break
		}
		n++
		if r.alone != nil {
			break
		}
		for i := range r.writes {
			bytes += len(r.writes[i].key) + len(r.writes[i].value)
		}
	}
	batch := make([]*request, n)
	copy(batch, q.pending)
	rest := copy(q.pending, q.pending[n:])
	clear(q.pending[rest:])
	q.pending = q.pending[:rest]
	return batch
}
