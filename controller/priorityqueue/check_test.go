// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"fmt"
	"testing"
)

// check walks a queue and fails the test if it contradicts itself. Every
// slot must be exactly where its state says, and every list and count must
// agree with the slots.
func check[T comparable](t testing.TB, q *queue[T]) {
	t.Helper()
	if err := inspect(q); err != nil {
		t.Fatalf("the queue contradicts itself: %v", err)
	}
}

func inspect[T comparable](q *queue[T]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.wanted() {
		return fmt.Errorf("%v is ready and a worker sleeps, but nobody was woken", q.age.head.key)
	}
	inLevels, err := inspectLevels(q)
	if err != nil {
		return err
	}
	inAge, err := walk(&q.age)
	if err != nil {
		return fmt.Errorf("age: %w", err)
	}
	flying, err := walk(&q.flying)
	if err != nil {
		return fmt.Errorf("flying: %w", err)
	}
	slots, err := inspectTable(&q.slots)
	if err != nil {
		return fmt.Errorf("table: %w", err)
	}
	nReady, nDelayed := 0, 0
	for key, s := range slots {
		if s.state == idle && !s.inFlight {
			return fmt.Errorf("%v is neither queued nor in flight", key)
		}
		lined := s.state == ready && !s.inFlight
		if inLevels[s] != lined || inAge[s] != lined {
			return fmt.Errorf("%v: state %d, in flight %t, but in its level %t and in age %t", key, s.state, s.inFlight, inLevels[s], inAge[s])
		}
		if flying[s] != s.inFlight {
			return fmt.Errorf("%v: in flight %t, in the list %t", key, s.inFlight, flying[s])
		}
		if s.state == ready {
			nReady++
			if s.level == nil || s.level.priority != s.priority {
				return fmt.Errorf("%v is counted at the wrong level", key)
			}
		}
		if s.state == waiting {
			nDelayed++
			if s.heapIndex >= len(q.delayed) || q.delayed[s.heapIndex] != s {
				return fmt.Errorf("%v is not where it thinks in the heap", key)
			}
		}
	}
	for i := range q.delayed {
		if parent := (i - 1) / 2; i > 0 && q.delayed.less(i, parent) {
			return fmt.Errorf("the heap is out of order at %d", i)
		}
	}
	if nReady != q.nReady || nDelayed != len(q.delayed) || len(flying) > len(slots) {
		return fmt.Errorf("counts: ready %d (says %d), delayed %d (has %d)", nReady, q.nReady, nDelayed, len(q.delayed))
	}
	return nil
}

// inspectTable returns the slots by key. Each must be found, and none twice.
func inspectTable[T comparable](t *table[T]) (map[T]*slot[T], error) {
	slots := map[T]*slot[T]{}
	var wrong error
	t.all(func(s *slot[T]) {
		if slots[s.key] != nil {
			wrong = fmt.Errorf("%v is in it twice", s.key)
		}
		if s.hash != t.hash(s.key) || t.find(s.hash, s.key) != s {
			wrong = fmt.Errorf("%v is in it and not found", s.key)
		}
		slots[s.key] = s
	})
	if len(slots) != t.n {
		wrong = fmt.Errorf("%d slots (says %d)", len(slots), t.n)
	}
	return slots, wrong
}

func inspectLevels[T comparable](q *queue[T]) (map[*slot[T]]bool, error) {
	all := map[*slot[T]]bool{}
	empty := 0
	for i, l := range q.levels {
		if i > 0 && q.levels[i-1].priority >= l.priority {
			return nil, fmt.Errorf("level %d is out of order", l.priority)
		}
		slots, err := walk(&l.turn)
		if err != nil {
			return nil, fmt.Errorf("level %d: %w", l.priority, err)
		}
		if len(slots) == 0 {
			empty++
		}
		for s := range slots {
			if s.level != l {
				return nil, fmt.Errorf("%v is in level %d but thinks otherwise", s.key, l.priority)
			}
			all[s] = true
		}
	}
	parked := 0
	for s := q.flying.head; s != nil; s = s.links[inTurn].next {
		parked++
	}
	if empty > keptLevels+parked {
		return nil, fmt.Errorf("%d empty levels are kept", empty)
	}
	return all, nil
}

func walk[T comparable](l *list[T]) (map[*slot[T]]bool, error) {
	seen := map[*slot[T]]bool{}
	var last *slot[T]
	for s := l.head; s != nil; s = s.links[l.link].next {
		if seen[s] {
			return nil, fmt.Errorf("%v is in the list twice", s.key)
		}
		if s.links[l.link].prev != last {
			return nil, fmt.Errorf("%v has the wrong predecessor", s.key)
		}
		seen[s], last = true, s
	}
	if l.tail != last {
		return nil, fmt.Errorf("the list has the wrong tail")
	}
	return seen, nil
}
