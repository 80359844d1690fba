// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"container/heap"
	"sync"
	"time"
)

// expiry knows what to delete and when. Times are absolute, so they hold over a restart.
type expiry struct {
	mu   sync.Mutex
	due  dueHeap
	wake chan struct{}
}

type due struct {
	at  int64
	key string
	mod int64
}

type dueHeap []due

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(due)) }
func (h *dueHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// note remembers the versions that will expire.
func (x *expiry) note(events []*event) {
	for _, e := range events {
		if e.cur != nil && e.cur.expires != 0 {
			x.add(e.cur)
		}
	}
}

func (x *expiry) add(v *version) {
	x.mu.Lock()
	defer x.mu.Unlock()
	heap.Push(&x.due, due{v.expires, v.key, v.mod})
	if x.due[0].mod == v.mod && x.wake != nil {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// pop gives the next thing that is due at now, or how long to wait for it.
func (x *expiry) pop(now int64) (due, time.Duration, bool) {
	// The wall clock may jump, so nobody sleeps longer than this on its word.
	const longest = 5 * time.Second
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.due) == 0 {
		return due{}, time.Hour, false
	}
	if wait := time.Duration(x.due[0].at - now); wait > 0 {
		return due{}, min(wait, longest), false
	}
	return heap.Pop(&x.due).(due), 0, true
}

// expire deletes what is due until the store closes.
func (s *Store) expire() {
	s.expiry.mu.Lock()
	s.expiry.wake = make(chan struct{}, 1)
	s.expiry.mu.Unlock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.expiry.wake:
		case <-timer.C:
		}
		timer.Reset(s.expireDue())
	}
}

// expireDue deletes what is due now and tells how long to wait for the next.
func (s *Store) expireDue() time.Duration {
	for {
		d, wait, ok := s.expiry.pop(s.now().UnixNano())
		if !ok {
			return wait
		}
		// A version that was replaced meanwhile is no longer there to be deleted. A write that fails means that the
		// store is full, closed or poisoned: the object outlives its time until that is over.
		r := &request{writes: []write{{op: op{kind: opDelete, key: d.key}, expect: d.mod}}}
		if err := s.do(r); err != nil {
			s.expiry.mu.Lock()
			heap.Push(&s.expiry.due, d)
			s.expiry.mu.Unlock()
			return time.Second
		}
	}
}
