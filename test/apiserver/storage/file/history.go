// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"sort"
	"strings"
	"time"
)

// history is the tail of all events: events[i] has revision floor+1+i. It is appended to and cut at the front by one
// goroutine at a time, under the store's lock; readers may keep slices of it.
type history struct {
	floor  int64 // the oldest revision whose state can still be told
	events []*event
	bytes  int64
}

func (h *history) append(e *event) {
	h.events = append(h.events, e)
	h.bytes += e.cost()
}

// after gives the events with a revision above rev, which must not be below the floor.
func (h *history) after(rev int64) []*event {
	return h.events[min(rev-h.floor, int64(len(h.events))):]
}

// cut forgets the events up to and including revision floor.
func (h *history) cut(floor int64) {
	if floor <= h.floor {
		return
	}
	n := min(floor-h.floor, int64(len(h.events)))
	for _, e := range h.events[:n] {
		h.bytes -= e.cost()
	}
	// A new array, as readers may still hold the old one, and as it would keep what was cut alive.
	h.events = append(make([]*event, 0, len(h.events)-int(n)+minHistoryEvents), h.events[n:]...)
	h.floor = floor
}

// surplus tells where to cut: it gives the new floor, or 0 when there is too little to cut to be worth it.
func (h *history) surplus(o *Options, now time.Time) int64 {
	n := len(h.events)
	if n == 0 {
		return 0
	}
	keep := n
	for bytes := h.bytes; keep > 0 && (keep > maxHistoryEvents || bytes > maxHistoryBytes); keep-- {
		bytes -= h.events[n-keep].cost()
	}
	forced := keep < n
	if keep > o.HistoryEvents {
		old := now.Add(-o.HistoryAge).UnixNano()
		aged := sort.Search(n, func(i int) bool { return h.events[i].time >= old })
		keep = max(min(keep, n-aged), min(keep, o.HistoryEvents))
	}
	drop := n - keep
	if drop == 0 || !forced && drop < n/4 {
		return 0
	}
	if forced && drop < n/4 {
		drop = n / 4 // so that a full history is not cut at every write
	}
	return h.floor + int64(drop)
}

// view is the whole store at one revision.
type view struct {
	root *node
	rev  int64
	past []*version // what the prefix looked like where it differs from root; sorted, value nil if absent then
}

// rewind turns a view of the present into one of the past: events are those after rev, oldest first, and only keys
// with the prefix will be looked at.
func (v *view) rewind(rev int64, prefix string, events []*event) {
	seen := make(map[string]struct{})
	for _, e := range events {
		if !strings.HasPrefix(e.key, prefix) {
			continue
		}
		if _, ok := seen[e.key]; ok {
			continue // the first event after rev knows best what was before it
		}
		seen[e.key] = struct{}{}
		if e.prev != nil {
			v.past = append(v.past, e.prev)
		} else {
			v.past = append(v.past, &version{key: e.key})
		}
	}
	sort.Slice(v.past, func(i, j int) bool { return v.past[i].key < v.past[j].key })
	v.rev = rev
}

// absent tells whether a version in past stands for "no such key then".
func (v *version) absent() bool { return v.mod == 0 }

// ascend calls yield for each version with the prefix and a key of at least from, in order, until yield says no.
func (v *view) ascend(prefix, from string, yield func(*version) bool) {
	start := max(prefix, from)
	past := v.past[sort.Search(len(v.past), func(i int) bool { return v.past[i].key >= start }):]
	more := true
	v.root.ascendPrefix(prefix, from, func(now *version) bool {
		for more && len(past) > 0 && past[0].key < now.key {
			more = past[0].absent() || yield(past[0])
			past = past[1:]
		}
		if more && len(past) > 0 && past[0].key == now.key {
			more = past[0].absent() || yield(past[0])
			past = past[1:]
		} else if more {
			more = yield(now)
		}
		return more
	})
	for ; more && len(past) > 0; past = past[1:] {
		more = past[0].absent() || yield(past[0])
	}
}

// get gives the version of one key, or nil.
func (v *view) get(key string) *version {
	i := sort.Search(len(v.past), func(i int) bool { return v.past[i].key >= key })
	if i < len(v.past) && v.past[i].key == key {
		if v.past[i].absent() {
			return nil
		}
		return v.past[i]
	}
	return v.root.get(key)
}

// count gives how many versions ascend would yield.
func (v *view) count(prefix, from string) int {
	n := v.root.within(prefix, from).count
	start := max(prefix, from)
	for _, p := range v.past {
		if p.key < start {
			continue
		}
		if v.root.get(p.key) != nil {
			n--
		}
		if !p.absent() {
			n++
		}
	}
	return n
}
