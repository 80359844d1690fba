// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	// sharedSlots is how many strings are shared at most; a power of two.
	sharedSlots = 2048
	// maxShared is the length of the longest string that is shared.
	maxShared = 64
)

// sharedStrings hands out one copy of strings that come again and again: field names above all, but also kinds, label
// values and the like. It is of fixed size, needs no lock, and forgets a string when another one takes its place. A string
// gets a place when it comes for the second time, so that names and UIDs do not push the others out.
type sharedStrings struct {
	seed   maphash.Seed
	last   [sharedSlots]atomic.Uint64
	shared [sharedSlots]atomic.Pointer[sharedString]
}

type sharedString struct {
	text  string
	boxed any // text, so that it need not be put into an interface again
}

var sharedKeys, sharedValues = newSharedStrings(), newSharedStrings()

func newSharedStrings() *sharedStrings { return &sharedStrings{seed: maphash.MakeSeed()} }

// find returns the shared copy of text, nil if it has none.
func (s *sharedStrings) find(text []byte) *sharedString {
	if len(text) > maxShared {
		return nil
	}
	hash := maphash.Bytes(s.seed, text)
	slot := hash % sharedSlots
	if found := s.shared[slot].Load(); found != nil && found.text == string(text) {
		return found
	}
	if s.last[slot].Swap(hash) != hash {
		return nil
	}
	added := &sharedString{text: string(text)}
	added.boxed = added.text
	s.shared[slot].Store(added)
	return added
}

func (s *sharedStrings) string(text []byte) string {
	if found := s.find(text); found != nil {
		return found.text
	}
	return string(text)
}

func (s *sharedStrings) any(text []byte) any {
	if found := s.find(text); found != nil {
		return found.boxed
	}
	return string(text)
}
