// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"hash/maphash"
	"slices"
)

// table finds the slot of a key. Its chains run through the slots, which
// remember their hash: a key is hashed once on its way through the queue, and
// before the lock is taken. A Go map hashes it for the look-up, for the insert
// and for the delete, with the lock held.
//
// It grows by linear hashing: each insert splits at most two chains, so no add
// waits until all slots have moved. Now and then one waits until the heads of
// the chains are copied.
type table[T comparable] struct {
	seed   maphash.Seed // never changed: hash reads it without the lock
	chains []*slot[T]
	mask   uint64 // of the round of splits under way
	split  uint64 // chains below it were split in this round
	n      int
}

// firstChains is the size of an empty table; a power of two.
const firstChains = 16

func newTable[T comparable](seed maphash.Seed) table[T] {
	t := table[T]{seed: seed}
	t.reset()
	return t
}

// hash may be called without the queue's lock.
func (t *table[T]) hash(key T) uint64 { return maphash.Comparable(t.seed, key) }

func (t *table[T]) chain(hash uint64) **slot[T] {
	i := hash & t.mask
	if i < t.split {
		i = hash & (t.mask<<1 | 1)
	}
	return &t.chains[i]
}

// find returns the slot of a key, or nil.
func (t *table[T]) find(hash uint64, key T) *slot[T] {
	for s := *t.chain(hash); s != nil; s = s.chain {
		if s.hash == hash && s.key == key {
			return s
		}
	}
	return nil
}

// insert takes a slot in whose key the table does not have.
func (t *table[T]) insert(s *slot[T]) {
	at := t.chain(s.hash)
	s.chain, *at = *at, s
	t.n++
	for len(t.chains) < 2*t.n {
		t.grow()
	}
}

// grow splits the next chain in two.
func (t *table[T]) grow() {
	low, bit := t.split, t.mask+1
	s := t.chains[low]
	t.chains[low] = nil
	if len(t.chains) == cap(t.chains) {
		t.chains = slices.Grow(t.chains, len(t.chains))
	}
	t.chains = append(t.chains, nil)
	for s != nil {
		next, to := s.chain, &t.chains[low|s.hash&bit]
		s.chain, *to = *to, s
		s = next
	}
	t.split++
	if t.split == bit {
		t.mask, t.split = t.mask<<1|1, 0
	}
}

// remove takes a slot out that is in.
func (t *table[T]) remove(s *slot[T]) {
	at := t.chain(s.hash)
	for *at != s {
		at = &(*at).chain
	}
	*at, s.chain = s.chain, nil
	t.n--
}

// all calls f for every slot. f must not change the table.
func (t *table[T]) all(f func(*slot[T])) {
	for _, s := range t.chains {
		for ; s != nil; s = s.chain {
			f(s)
		}
	}
}

// reset empties the table and gives its memory back.
func (t *table[T]) reset() {
	t.chains, t.mask, t.split, t.n = make([]*slot[T], firstChains), firstChains-1, 0, 0
}
