// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
)

// Verify walks the store's invariants and gives what it finds broken. It blocks writers while it runs, so it is for
// tests and for the check command.
func (s *Store) Verify() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var errs []error
	bad := func(format string, args ...any) {
		if len(errs) < 20 {
			errs = append(errs, fmt.Errorf("store invariant: "+format, args...))
		}
	}
	if s.tree.root != nil {
		s.tree.root.verify(true, bad)
	}
	before := ""
	s.tree.root.ascend("", func(v *version) bool {
		if v.key <= before {
			bad("key %q stands behind %q", v.key, before)
		}
		if v.created < 1 || v.created > v.mod || v.mod > s.rev {
			bad("%q was made at %d and written at %d, and the store is at %d", v.key, v.created, v.mod, s.rev)
		}
		v.objects.verify(v.key, bad)
		before = v.key
		return true
	})
	s.verifyHistory(bad)
	return errors.Join(errs...)
}

// verifyHistory checks that history is gapless and that its end is the present.
func (s *Store) verifyHistory(bad func(string, ...any)) {
	h := &s.history
	if h.floor < 1 || h.floor+int64(len(h.events)) != s.rev {
		bad("history has %d events from %d, and the store is at %d", len(h.events), h.floor, s.rev)
	}
	latest := make(map[string]*version)
	for i, e := range h.events {
		if e.rev != h.floor+1+int64(i) {
			bad("event %d of history has revision %d, want %d", i, e.rev, h.floor+1+int64(i))
		}
		if known, ok := latest[e.key]; ok && known != e.prev {
			bad("revision %d of %q does not follow the one before it", e.rev, e.key)
		}
		if e.cur == nil && e.prev == nil {
			bad("revision %d of %q deletes nothing", e.rev, e.key)
		}
		if e.cur != nil && e.cur.mod != e.rev {
			bad("revision %d of %q says it is %d", e.rev, e.key, e.cur.mod)
		}
		latest[e.key] = e.cur
		e.gone.verify(e.key, bad)
	}
	for key, v := range latest {
		if s.tree.root.get(key) != v {
			bad("the index does not hold the last event of %q", key)
		}
	}
}

func (n *node) verify(root bool, bad func(string, ...any)) {
	if len(n.items) > maxItems || !root && len(n.items) < maxItems/2 {
		bad("a node has %d items", len(n.items))
	}
	var sum size
	for _, v := range n.items {
		sum = sum.plus(sizeOf(v))
	}
	if len(n.kids) > 0 && len(n.kids) != len(n.items)+1 {
		bad("a node has %d items and %d kids", len(n.items), len(n.kids))
	}
	for _, kid := range n.kids {
		if (len(kid.kids) == 0) != (len(n.kids[0].kids) == 0) {
			bad("leaves at different depths")
		}
		kid.verify(false, bad)
		sum = sum.plus(kid.size)
	}
	if sum != n.size {
		bad("a node says %+v and holds %+v", n.size, sum)
	}
}

// verify looks for readers that changed what they share.
func (c *cell) verify(key string, bad func(string, ...any)) {
	for o := c.first.Load(); o != nil; o = o.next {
		if !o.unchanged() {
			bad("a reader changed the shared object %s", key)
		}
	}
}
