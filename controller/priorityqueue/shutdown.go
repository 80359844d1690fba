// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import "time"

// ShuttingDown tells whether ShutDown or ShutDownWithDrain was called.
func (q *queue[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.phase != running
}

// ShutDown ends the queue at once: queued keys are dropped, later adds are
// ignored, and every Get returns. Keys in flight may still be Done. It does
// not block, ends a drain under way, and does nothing the second time.
func (q *queue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stop()
}

// ShutDownWithDrain ignores later adds, drops what is not due yet, hands out
// what is ready, and returns when all of that is done. It also returns when
// ShutDown is called or when nothing has moved for DrainStall.
func (q *queue[T]) ShutDownWithDrain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.phase == running {
		q.phase = draining
		q.dropDelayed()
		q.work.Broadcast()
	}
	stall := q.startStall()
	for q.phase == draining && (q.nReady > 0 || q.flying.head != nil) {
		q.drained.Wait()
	}
	stall.Stop()
	q.stop()
}

// startStall starts the timer that ends a drain in which nothing moves.
// q.mu is held.
func (q *queue[T]) startStall() *time.Timer {
	seen := q.moves
	var t *time.Timer
	t = time.AfterFunc(DrainStall, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.phase != draining {
			return
		}
		if q.moves == seen {
			q.stop()
			return
		}
		seen = q.moves
		t.Reset(DrainStall)
	})
	return t
}

// stop drops everything that is queued and wakes everybody. q.mu is held.
func (q *queue[T]) stop() {
	if q.phase == stopped {
		return
	}
	q.phase = stopped
	q.dropDelayed()
	q.slots.all(func(s *slot[T]) {
		if s.state == ready {
			s.level.depth.Dec()
		}
	})
	q.slots.reset()
	for s := q.flying.head; s != nil; s = s.links[inTurn].next {
		s.state, s.level = idle, nil
		q.slots.insert(s)
	}
	q.levels, q.age, q.nReady = nil, list[T]{link: inAge}, 0
	q.free, q.nFree = nil, maxFree
	q.showRunning(q.now())
	q.work.Broadcast()
	q.drained.Broadcast()
}

func (q *queue[T]) dropDelayed() {
	if q.alarm.timer != nil {
		q.alarm.timer.Stop()
	}
	for i, s := range q.delayed {
		q.delayed[i] = nil
		s.state = idle
		if !s.inFlight {
			q.slots.remove(s)
		}
	}
	q.delayed = nil
}
