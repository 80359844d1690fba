// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"os"
	"slices"
)

// checking makes every change of a store walk its invariants and panic where one is broken. Tests switch it on;
// WHERRY_CHECK_CACHE=1 does in any program.
var checking = os.Getenv("WHERRY_CHECK_CACHE") == "1"

// maxChecked is the size above which a store is not checked at every change: a check looks at everything.
const maxChecked = 2_000

// checked panics if an invariant of the part is broken. The caller holds the entry's deliverMu.
func (p *part) checked() {
	if !checking || p.store.size() > maxChecked {
		return
	}
	if err := p.store.check(); err != nil {
		panic(fmt.Sprintf("the cache of %s is broken: %v", p.set.entry.gvk, err))
	}
	if err := p.overlay.check(); err != nil {
		panic(fmt.Sprintf("the overlay of %s is broken: %v", p.set.entry.gvk, err))
	}
}

// check walks the store: order and map hold the same items, sorted, and every posting holds exactly the items
// that have its value.
func (s *store) check() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	last, n := "", 0
	for it := range s.order.from("", "") {
		if n > 0 && it.key <= last {
			return fmt.Errorf("%s comes after %s", it.key, last)
		}
		if s.items[it.key] != it {
			return fmt.Errorf("the order has another item for %s than the map", it.key)
		}
		last = it.key
		n++
	}
	if n != len(s.items) || n != s.order.len() {
		return fmt.Errorf("%d items, %d in order, %d counted", len(s.items), n, s.order.len())
	}
	for _, x := range s.indexes {
		if err := s.checkIndex(x); err != nil {
			return err
		}
	}
	for _, x := range s.labels {
		if err := s.checkIndex(x); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) checkIndex(x *index) error {
	filed := 0
	for value, posting := range x.postings {
		if posting.len() == 0 {
			return fmt.Errorf("index %q keeps an empty posting of %q", x.name, value)
		}
		filed += posting.len()
	}
	for key, it := range s.items {
		values, err := x.valuesOf(it.obj)
		if (err != nil) != (x.broken[key] != nil) {
			return fmt.Errorf("index %q: %s fails with %v, noted is %v", x.name, key, err, x.broken[key])
		}
		slices.Sort(values)
		for _, v := range slices.Compact(values) {
			if p := x.postings[v]; p == nil || !p.has(key) {
				return fmt.Errorf("index %q lacks %s under %q", x.name, key, v)
			}
			filed--
		}
	}
	if filed != 0 {
		return fmt.Errorf("index %q has %d entries too many", x.name, filed)
	}
	return nil
}

// check walks the overlay: no slot is empty, no answer is of a buried object, and the number that readers look at
// is right.
func (o *overlay) check() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if int(o.n.Load()) != len(o.slots)+len(o.ranges) {
		return fmt.Errorf("%d keys and %d ranges, counted are %d", len(o.slots), len(o.ranges), o.n.Load())
	}
	for key, s := range o.slots {
		if s.empty() {
			return fmt.Errorf("the slot of %s is empty", key)
		}
		if s.answer != nil && s.answer.obj != nil && s.buried(s.answer.uid) {
			return fmt.Errorf("the answer of %s is of a buried object", key)
		}
	}
	return nil
}
