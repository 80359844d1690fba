// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"sync"
)

// hub brings events to the taps that want them. The store's lock guards its maps.
type hub struct {
	prefixes map[string][]*tap
	keys     map[string][]*tap
	progress map[*watcher]struct{} // watches that want to hear of progress
}

func (h *hub) init() {
	h.prefixes = make(map[string][]*tap)
	h.keys = make(map[string][]*tap)
	h.progress = make(map[*watcher]struct{})
}

// offer gives e to every tap whose prefix or key it has. It never blocks.
func (h *hub) offer(e *event) {
	for _, t := range h.keys[e.key] {
		t.offer(e)
	}
	for i := range len(e.key) {
		if e.key[i] == '/' {
			for _, t := range h.prefixes[e.key[:i+1]] {
				t.offer(e)
			}
		}
	}
}

func (h *hub) of(t *tap) map[string][]*tap {
	if t.recursive {
		return h.prefixes
	}
	return h.keys
}

// tap is one reader's place in the stream of events. It costs the writers an append to its queue at most: when that
// is full the tap falls back to reading history, and when history has moved on it is cut.
type tap struct {
	store     *Store
	key       string // ends in "/" if recursive
	recursive bool
	wake      chan struct{} // receives when there may be something new

	mu     sync.Mutex
	queue  []*event
	behind bool // the queue is not in use; cursor tells where in history to go on

	cursor int64 // everything up to here has been given out; the reader's alone
}

// tap starts a stream of what happens after revision from to one key, or to all keys with a prefix. The caller must
// drop it.
func (s *Store) tap(key string, recursive bool, from int64) *tap {
	t := &tap{store: s, key: key, recursive: recursive, cursor: from, behind: true, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.hub.of(t)
	m[key] = append(m[key], t)
	return t
}

func (t *tap) drop() {
	s := t.store
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.hub.of(t)
	taps := m[t.key]
	for i := range taps {
		if taps[i] == t {
			taps[i] = taps[len(taps)-1]
			taps = removeAt(taps, len(taps)-1)
			break
		}
	}
	if len(taps) == 0 {
		delete(m, t.key)
	} else {
		m[t.key] = taps
	}
}

// offer is called with the store's lock held.
func (t *tap) offer(e *event) {
	t.mu.Lock()
	switch {
	case t.behind:
	case len(t.queue) >= watchQueue:
		t.queue, t.behind = nil, true
	default:
		t.queue = append(t.queue, e)
	}
	t.mu.Unlock()
	t.poke()
}

func (t *tap) wants(e *event) bool {
	if t.recursive {
		return len(e.key) > len(t.key) && e.key[:len(t.key)] == t.key
	}
	return e.key == t.key
}

// next gives what has happened since the last call, oldest first, and the revision up to which nothing is missing
// any more. It does not block: there may be nothing. It fails with ErrCompacted when the reader was too slow.
func (t *tap) next() ([]*event, int64, error) {
	s := t.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.behind {
		events := t.queue
		t.queue = nil
		for len(events) > 0 && events[0].rev <= t.cursor {
			events = events[1:]
		}
		t.cursor = max(t.cursor, s.rev)
		return events, t.cursor, nil
	}
	if t.cursor < s.history.floor {
		return nil, t.cursor, ErrCompacted
	}
	missed := s.history.after(t.cursor)
	if len(missed) <= watchChunk {
		t.behind = false
		t.cursor = max(t.cursor, s.rev)
	} else {
		missed = missed[:watchChunk]
		t.cursor = missed[len(missed)-1].rev
		t.poke() // there is more to come
	}
	var events []*event
	for _, e := range missed {
		if t.wants(e) {
			events = append(events, e)
		}
	}
	return events, t.cursor, nil
}

// poke makes the reader call next again.
func (t *tap) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
