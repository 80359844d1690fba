// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// change is one thing that happened to one object: old is nil for an addition, new for a deletion.
type change struct {
	old, new any
	// initial marks objects of the first list, or those present when the handler came.
	initial bool
	// unseen marks a deletion noticed by a relist: what is known of the object may be stale.
	unseen bool
	// resync marks an update made locally, with new the same object as old.
	resync bool
}

// handoff stands between a store and one handler that may block: it takes changes without ever waiting and
// hands them on, one after the other, from a goroutine of its own. Changes of one object that wait are
// joined into one (the oldest old, the newest new), so that what waits is bounded by the number of objects.
// A deletion and the namesake created after it stay two.
type handoff struct {
	deliver func(key string, c change)

	mu      sync.Mutex
	waiting map[string][]change // by key; at most maxPerKey each
	queue   []string            // keys in the order they began to wait
	// early counts what waits or is being delivered of the changes that were put while counting them.
	early    int
	counting bool
	running  bool
	closed   bool
	synced   chan struct{} // closed when counting has ended and early is 0
	idle     sync.WaitGroup
}

// maxPerKey bounds what waits for one key: an update that took the object from one owner to another, its
// deletion, and the creation of its namesake.
const maxPerKey = 3

func newHandoff(deliver func(key string, c change)) *handoff {
	return &handoff{deliver: deliver, waiting: map[string][]change{}, counting: true, synced: make(chan struct{})}
}

// put takes a change. It never blocks on the handler.
func (h *handoff) put(key string, c change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	before, waits := h.waiting[key]
	if !waits {
		h.queue = append(h.queue, key)
		if h.counting {
			h.early++
		}
	}
	h.waiting[key] = join(before, c)
	if !h.running {
		h.running = true
		h.idle.Go(h.run)
	}
}

// filled tells that the store is filled: everything put before counts for the handler's own sync.
func (h *handoff) filled() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.counting {
		return
	}
	h.counting = false
	if h.early == 0 {
		close(h.synced)
	}
}

// run delivers until nothing waits. There is at most one at a time.
func (h *handoff) run() {
	for {
		h.mu.Lock()
		if len(h.queue) == 0 || h.closed {
			h.running, h.queue = false, nil
			h.mu.Unlock()
			return
		}
		key := h.queue[0]
		h.queue[0] = ""
		h.queue = h.queue[1:]
		changes := h.waiting[key]
		delete(h.waiting, key)
		early := h.early > 0
		h.mu.Unlock()

		for _, c := range changes {
			h.deliver(key, c)
		}
		if early {
			h.delivered()
		}
	}
}

// delivered counts one early key down. Keys queue in the order they came, so the first to leave are the
// early ones.
func (h *handoff) delivered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.early--
	if h.early == 0 && !h.counting {
		close(h.synced)
	}
}

// len returns how many keys wait.
func (h *handoff) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiting)
}

// close drops what waits. A handler that is running is not interrupted; wait waits for it.
func (h *handoff) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.waiting, h.queue = map[string][]change{}, nil
}

// wait returns when the handler is not running. Call it after close and never from the handler.
func (h *handoff) wait() { h.idle.Wait() }

// join adds c to the changes that wait for the same key.
func join(waiting []change, c change) []change {
	if len(waiting) == 0 {
		return []change{c}
	}
	last := &waiting[len(waiting)-1]
	switch {
	case last.new != nil && c.new != nil: // still there: one change
		last.new = c.new
		last.resync = last.resync && c.resync
		return waiting
	case last.new != nil && c.new == nil: // gone
		if last.old != nil && !sameOwners(last.old, c.old) {
			break // whoever owned it before must hear that it left him
		}
		*last = c
		// The handler never heard of an object that was added and deleted here, yet it hears of the end:
		// what owned it has to act.
		return bound(waiting)
	}
	return bound(append(waiting, c))
}

// bound keeps what waits for a key at maxPerKey: of two ends in a row it keeps the first, that of the
// object the handler knew; it never heard of the other.
func bound(waiting []change) []change {
	n := len(waiting)
	if n >= maxPerKey && waiting[n-1].new == nil && waiting[n-2].new == nil {
		return waiting[:n-1]
	}
	return waiting
}

func sameOwners(a, b any) bool {
	x, ok := a.(metav1.Object)
	y, ok2 := b.(metav1.Object)
	if !ok || !ok2 {
		return true
	}
	return slices.EqualFunc(x.GetOwnerReferences(), y.GetOwnerReferences(), func(a, b metav1.OwnerReference) bool {
		return a.UID == b.UID && a.Name == b.Name
	})
}

// tell calls the method of a handler that fits a change.
func tell(h toolscache.ResourceEventHandler, key string, c change) {
	switch {
	case c.old == nil:
		h.OnAdd(c.new, c.initial)
	case c.new != nil:
		h.OnUpdate(c.old, c.new)
	case c.unseen:
		h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key, Obj: c.old})
	default:
		h.OnDelete(c.old)
	}
}
