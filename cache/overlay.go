// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// overlayAge is how long an answer or a tombstone may wait for the store to catch up. After that the
	// watch is taken for stuck and reads of the kind go to the server until it has caught up. It is above the
	// minute within which servers send bookmarks.
	overlayAge = 2 * time.Minute
	// maxFetchedHoles is how many holes a List fetches one by one; above it the List goes to the server.
	maxFetchedHoles = 8
	// maxOverlay is how many keys an overlay holds before one live List of the kind settles all its holes.
	maxOverlay = 1024
)

// answer is what the server said a key holds at a version: an object, or nothing that the cache may show
// (obj nil). It counts while the store stands below version.
type answer struct {
	obj     any
	uid     types.UID
	version string
	at      time.Time
}

// tombstone masks the object with one UID: it is gone, whatever the store still shows.
type tombstone struct {
	uid   types.UID
	since uint64
	at    time.Time
}

// hole says that a write happened whose outcome is not known here. sent orders it among writes: only an
// answer to a request that was sent after the hole appeared can fill it.
type hole struct {
	since uint64
}

// slot is what an overlay holds for one key.
type slot struct {
	answer *answer
	tombs  []tombstone
	hole   *hole
}

func (s *slot) empty() bool { return s.answer == nil && len(s.tombs) == 0 && s.hole == nil }

func (s *slot) buried(uid types.UID) bool {
	for _, t := range s.tombs {
		if t.uid == uid {
			return true
		}
	}
	return false
}

// overlay lies beside a store and holds what this process wrote and the store has not seen yet. It is empty
// almost always, and then a read pays one atomic load for it.
//
// Order matters more than locks here. A change reaches the store first, then the overlay, then handlers. A
// read takes the overlay first, then the store's version, then the object, and honours an answer only while
// that version is below the answer's own; so removing an entry late or adding one late never shows an older
// object, and retiring is only tidying up.
type overlay struct {
	mu    sync.Mutex
	slots map[string]*slot
	// ranges are holes over all keys with a prefix, and since when: the outcome of a deletion of many was lost.
	ranges map[string]uint64
	n      atomic.Int64
	// clock orders writes and holes of this overlay.
	clock func() uint64
	now   func() time.Time
	// gone are the UIDs of objects whose DELETE event came last: a tombstone that is late for one is not needed.
	gone [64]types.UID
	next int
	// woken tells the keeper that something was put into an empty overlay.
	woken chan struct{}
	// stuck is set while something is older than overlayAge: reads of the kind go live.
	stuck atomic.Bool
}

func newOverlay(clock func() uint64) *overlay {
	return &overlay{slots: map[string]*slot{}, ranges: map[string]uint64{}, clock: clock, now: time.Now, woken: make(chan struct{}, 1)}
}

// empty reports whether the overlay says nothing about any key.
func (o *overlay) empty() bool { return o.n.Load() == 0 }

// size returns the number of keys the overlay says something about.
func (o *overlay) size() int { return int(o.n.Load()) }

// slotOf returns the slot of key, made if absent. The caller holds the lock and calls settle afterwards.
func (o *overlay) slotOf(key string) *slot {
	s := o.slots[key]
	if s == nil {
		s = &slot{}
		if len(o.slots) == 0 { // else it is awake
			wake(o.woken)
		}
		o.slots[key] = s
	}
	return s
}

// settle drops a slot that says nothing more and updates the count. The caller holds the lock.
func (o *overlay) settle(key string, s *slot) {
	if s.empty() {
		delete(o.slots, key)
	}
	o.count()
}

// count updates the number that readers look at. The caller holds the lock.
func (o *overlay) count() { o.n.Store(int64(len(o.slots) + len(o.ranges))) }

// putRange records that a deletion of many, of keys with this prefix, was sent and its outcome is not known.
func (o *overlay) putRange(prefix string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ranges[prefix] = o.clock()
	o.count()
}

// rangeOver returns the prefix of a range that shares keys with those that begin with prefix.
func (o *overlay) rangeOver(prefix string) (string, bool) {
	if o.empty() {
		return "", false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for r := range o.ranges {
		if strings.HasPrefix(prefix, r) || strings.HasPrefix(r, prefix) {
			return r, true
		}
	}
	return "", false
}

// closeRange drops a range that was settled by a request sent at time sent.
func (o *overlay) closeRange(prefix string, sent uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if since, ok := o.ranges[prefix]; ok && since < sent {
		delete(o.ranges, prefix)
	}
	o.count()
}

// putAnswer records that a request which was sent at time sent was answered with obj at version. obj nil
// means: there, or not, but nothing the cache may show.
func (o *overlay) putAnswer(key string, obj any, uid types.UID, version string, sent uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.slotOf(key)
	defer o.settle(key, s)
	s.filledBy(sent)
	if uid != "" && s.buried(uid) {
		return // the answer was overtaken by the object's end
	}
	if s.answer == nil || newer(version, s.answer.version) {
		s.answer = &answer{obj: obj, uid: uid, version: version, at: o.now()}
	}
}

// putTombstone records that the object with this UID is gone. version is the last it is known to have had, if
// any; held is the UID of what the store holds under the key.
//
// A tombstone masks one UID, and the store may be so far behind that it still shows a former object of the key.
// So the key is also answered with "nothing" up to the last version that is known of the object; if none is, and
// the store does not hold it or another object was answered, the server has to be asked.
func (o *overlay) putTombstone(key string, uid types.UID, version string, held types.UID, sent uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.slotOf(key)
	defer o.settle(key, s)
	s.filledBy(sent)
	if s.answer != nil && s.answer.uid == uid {
		if newer(s.answer.version, version) {
			version = s.answer.version
		}
		s.answer = nil
	}
	if s.buried(uid) || slices.Contains(o.gone[:], uid) {
		return
	}
	s.tombs = append(s.tombs, tombstone{uid: uid, since: o.clock(), at: o.now()})
	switch {
	case isNumber(version):
		if s.answer == nil || !newer(s.answer.version, version) {
			s.answer = &answer{uid: uid, version: version, at: o.now()}
		}
	case s.answer != nil || held != uid:
		s.hole = &hole{since: o.clock()}
	}
}

// putHole records that something was written whose outcome is not known here.
func (o *overlay) putHole(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.slotOf(key)
	s.hole = &hole{since: o.clock()}
	o.settle(key, s)
}

// slotAt returns a copy of what the overlay says about key.
func (o *overlay) slotAt(key string) (slot, bool) {
	if o.empty() {
		return slot{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.slots[key]
	if s == nil {
		return slot{}, false
	}
	return s.copy(), true
}

func (s *slot) copy() slot {
	c := *s
	c.tombs = append([]tombstone(nil), s.tombs...)
	return c
}

// holes returns how many keys have a hole.
func (o *overlay) holes() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.slots {
		if s.hole != nil {
			n++
		}
	}
	return n
}

// snapshot returns a copy of everything the overlay says about keys that match.
func (o *overlay) snapshot(match func(key string) bool) map[string]slot {
	if o.empty() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make(map[string]slot, len(o.slots))
	for key, s := range o.slots {
		if match(key) {
			out[key] = s.copy()
		}
	}
	return out
}

// passed retires, for one key, the answers that a store at version has caught up with.
func (o *overlay) passed(key string, version string) {
	if o.empty() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.slots[key]; s != nil {
		s.retire(version)
		o.settle(key, s)
	}
}

// overtaken records that a request which was sent at time sent was answered with nothing that a store at version has not
// seen.
func (o *overlay) overtaken(key, version string, sent uint64) {
	if o.empty() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.slots[key]; s != nil {
		s.filledBy(sent)
		s.retire(version)
		o.settle(key, s)
	}
}

// filledBy drops a hole that the answer to a request which was sent at time sent has filled.
func (s *slot) filledBy(sent uint64) {
	if s.hole != nil && s.hole.since < sent {
		s.hole = nil
	}
}

func (s *slot) retire(version string) {
	if s.answer != nil && !newer(s.answer.version, version) {
		s.answer = nil
	}
}

// sweep retires every answer that a store at version has caught up with.
func (o *overlay) sweep(version string) {
	if o.empty() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, s := range o.slots {
		s.retire(version)
		if s.empty() {
			delete(o.slots, key)
		}
	}
	o.count()
}

// unbury drops the tombstone of an object whose end the store has seen: by its DELETE event, or because another
// object took its place. Tombstones of other objects of the key stay: they may be of ones the store is yet to see.
func (o *overlay) unbury(key string, uid types.UID) {
	o.mu.Lock()
	o.gone[o.next%len(o.gone)] = uid
	o.next++
	o.mu.Unlock()
	if o.empty() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.slots[key]
	if s == nil {
		return
	}
	s.dropTombs(func(t tombstone) bool { return t.uid == uid })
	o.settle(key, s)
}

func (s *slot) dropTombs(done func(tombstone) bool) {
	kept := s.tombs[:0]
	for _, t := range s.tombs {
		if !done(t) {
			kept = append(kept, t)
		}
	}
	s.tombs = kept
}

// relisted retires what a list at version, sent at time sent and holding listed, has settled. A list below the
// version the store had before means a restored server: all that was known is void.
//
// That a list lacks an object tells that it is gone only if the list was sent after the object was buried, or if
// the store held the object before: else the list may be from before its creation.
func (o *overlay) relisted(version, before string, sent uint64, listed, held func(key string) types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if newer(before, version) {
		clear(o.slots)
		clear(o.ranges)
		o.n.Store(0)
		o.stuck.Store(false)
		return
	}
	maps.DeleteFunc(o.ranges, func(_ string, since uint64) bool { return since < sent })
	for key, s := range o.slots {
		s.retire(version)
		s.dropTombs(func(t tombstone) bool {
			return t.uid != listed(key) && (t.since < sent || t.uid == held(key))
		})
		s.filledBy(sent)
		if s.empty() {
			delete(o.slots, key)
		}
	}
	o.count()
}

// aged looks for what is older than overlayAge: tombstones of objects the store does not hold leave, all
// else makes the overlay stuck. It returns whether it is, whether that is new, and when to look again.
func (o *overlay) aged(uidOf func(key string) types.UID) (stuck, news bool, again time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now, next := o.now(), time.Time{}
	soonest := func(at time.Time) {
		if due := at.Add(overlayAge); next.IsZero() || due.Before(next) {
			next = due
		}
	}
	for key, s := range o.slots {
		s.dropTombs(func(t tombstone) bool {
			return now.Sub(t.at) >= overlayAge && uidOf(key) != t.uid
		})
		for _, t := range s.tombs {
			if now.Sub(t.at) >= overlayAge {
				stuck = true
			} else {
				soonest(t.at)
			}
		}
		if s.answer != nil {
			switch {
			case now.Sub(s.answer.at) < overlayAge:
				soonest(s.answer.at)
			case s.answer.obj == nil && uidOf(key) == "":
				// Nothing is shown and nothing is stored: no event may ever come for the key.
				s.answer = nil
			default:
				stuck = true
			}
		}
		if s.empty() {
			delete(o.slots, key)
		}
	}
	o.count()
	news = o.stuck.Swap(stuck) != stuck
	if !next.IsZero() {
		again = next.Sub(now)
	}
	return stuck, news, again
}
