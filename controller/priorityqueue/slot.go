// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

// state tells where a slot's key is queued. Whether a worker has the key is a
// separate question, answered by slot.inFlight: a key can be both.
type state uint8

const (
	idle    state = iota // not queued
	waiting              // delayed: in the heap
	ready                // in its level's list, or parked while a worker has the key
)

// slot is the queue's one record of a key. It exists while the key is queued
// or in flight.
type slot[T comparable] struct {
	key      T
	hash     uint64   // of key, in the table
	chain    *slot[T] // the next slot of the table's chain
	priority int

	// links[inTurn] chains the slot into its level or, once handed out, into
	// the list of keys in flight. links[inAge] chains it into the list of all
	// ready slots, oldest first.
	links [2]links[T]

	state    state
	inFlight bool

	level   *level[T] // where it is counted while ready
	since   int64     // ready since, in queue time
	started int64     // handed out at, in queue time

	due       int64 // when waiting: ready at, in queue time
	seq       uint64
	heapIndex int

	causes causes
}

type links[T comparable] struct{ next, prev *slot[T] }

const (
	inTurn = iota
	inAge
)

// list is a doubly linked list of slots through one of their two links.
type list[T comparable] struct {
	head, tail *slot[T]
	link       int
}

func (l *list[T]) pushBack(s *slot[T]) {
	at := &s.links[l.link]
	at.next, at.prev = nil, l.tail
	if l.tail == nil {
		l.head = s
	} else {
		l.tail.links[l.link].next = s
	}
	l.tail = s
}

func (l *list[T]) remove(s *slot[T]) {
	at := &s.links[l.link]
	if at.prev == nil {
		l.head = at.next
	} else {
		at.prev.links[l.link].next = at.next
	}
	if at.next == nil {
		l.tail = at.prev
	} else {
		at.next.links[l.link].prev = at.prev
	}
	at.next, at.prev = nil, nil
}

// level is one priority: its ready slots in order of arrival, and the gauge
// that counts them together with the parked ones.
type level[T comparable] struct {
	priority int
	turn     list[T]
	depth    gauge
}

// keptLevels is how many levels stay when they run empty. A controller uses a
// handful of priorities; one that uses more pays for making levels anew.
const keptLevels = 25

// levels are sorted by priority, lowest first.
type levels[T comparable] []*level[T]

// find returns the position of the first level whose priority is at least p.
// It walks from the top because that is where almost all adds go.
func (ls levels[T]) find(p int) int {
	if len(ls) <= keptLevels {
		i := len(ls)
		for i > 0 && ls[i-1].priority >= p {
			i--
		}
		return i
	}
	lo, hi := 0, len(ls)
	for lo < hi {
		mid := (lo + hi) / 2
		if ls[mid].priority < p {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// highest returns the highest level that has a ready slot, or nil.
func (ls levels[T]) highest() *level[T] {
	for i := len(ls) - 1; i >= 0; i-- {
		if ls[i].turn.head != nil {
			return ls[i]
		}
	}
	return nil
}
