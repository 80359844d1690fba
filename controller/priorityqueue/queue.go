// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"hash/maphash"
	"math"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/controller/fault"
)

// The limits of a queue.
const (
	// AgeAfter is how long a ready key may be passed over before it gets a
	// share of the hand-outs.
	AgeAfter = 10 * time.Second

	// AgeShare is that share: one of so many hand-outs.
	AgeShare = 4

	// DrainStall is how long ShutDownWithDrain waits while nothing moves.
	DrainStall = 2 * time.Minute

	// maxDelay is the longest delay, about a century: a due time computed
	// from it cannot overflow.
	maxDelay = time.Duration(math.MaxInt64 / 3)

	// maxFree is how many unused slots are kept for later.
	maxFree = 1024

	// roomyTable is the number of chains above which the table is made anew
	// once the queue has run empty, because it does not shrink.
	roomyTable = 16384
)

type phase uint8

const (
	running phase = iota
	draining
	stopped
)

// queue is the one implementation of PriorityQueue. mu guards everything but
// the limiter, the meter's histograms and the table's seed, which are used
// without it.
type queue[T comparable] struct {
	limiter fault.Limiter[T]
	meter   *meter
	epoch   time.Time

	mu      sync.Mutex // whoever makes a slot ready, or takes one, releases it by unlock
	work    sync.Cond  // a slot became ready, or the phase changed
	drained sync.Cond  // something was handed out or done while draining
	phase   phase
	waiters int  // workers in work.Wait
	coming  bool // one of them was woken and has not arrived yet

	slots   table[T]
	free    *slot[T]
	nFree   int
	seq     uint64
	nReady  int // ready slots, parked ones included
	passed  int // hand-outs since the oldest ready slot had its turn
	levels  levels[T]
	age     list[T] // every ready slot that is not parked, oldest first
	flying  list[T] // every slot in flight, longest first
	delayed delayed[T]
	alarm   alarm
	moves   uint64 // counts hand-outs and Dones, for DrainStall
}

func newQueue[T comparable](limiter workqueue.TypedRateLimiter[T], m *meter, faults *fault.Keeper) *queue[T] {
	q := &queue[T]{
		limiter: fault.Limiter[T]{Of: limiter, Keeper: faults},
		meter:   m,
		epoch:   time.Now(),
		slots:   newTable[T](maphash.MakeSeed()),
		age:     list[T]{link: inAge},
		flying:  list[T]{link: inTurn},
	}
	q.work.L, q.drained.L = &q.mu, &q.mu
	return q
}

// unlock releases q.mu, and wakes a worker if there is something to do for
// it. It is the one place that does: whoever leaves a ready slot behind comes
// through here, the worker that took the slot before it as well. So one worker
// on its way is enough, however many slots there are, and one that comes back
// to the queue by itself meanwhile costs nobody a wake-up.
func (q *queue[T]) unlock() {
	wake := q.wanted()
	if wake {
		q.coming = true
	}
	q.mu.Unlock()
	if wake {
		q.work.Signal()
	}
}

// wanted tells whether a worker sleeps that has something to do. q.mu is held.
func (q *queue[T]) wanted() bool { return q.waiters > 0 && !q.coming && q.age.head != nil }

// now is the queue's clock: monotonic nanoseconds since the queue was made.
func (q *queue[T]) now() int64 { return int64(time.Since(q.epoch)) }

// Add queues a key with priority 0.
func (q *queue[T]) Add(item T) { q.put(item, 0, 0, nil) }

// AddAfter queues a key with priority 0 after a delay.
func (q *queue[T]) AddAfter(item T, d time.Duration) { q.put(item, 0, d, nil) }

// AddRateLimited queues a key with priority 0 when its rate limiter says so.
func (q *queue[T]) AddRateLimited(item T) { q.put(item, 0, q.limiter.When(item), nil) }

// AddWithOpts implements PriorityQueue.
func (q *queue[T]) AddWithOpts(o AddOpts, items ...T) {
	for _, item := range items {
		q.addWithCause(o, nil, item)
	}
}

// AddWithCause is AddWithOpts for one key, and remembers why.
func (q *queue[T]) AddWithCause(o AddOpts, c Cause, item T) { q.addWithCause(o, &c, item) }

func (q *queue[T]) addWithCause(o AddOpts, c *Cause, item T) {
	after := o.After
	if o.RateLimited {
		if d := q.limiter.When(item); after <= 0 || d < after {
			after = d
		}
	}
	priority := 0
	if o.Priority != nil {
		priority = *o.Priority
	}
	q.put(item, priority, after, c)
}

// put is the one way into the queue. The cause may be nil; it is only read.
func (q *queue[T]) put(item T, priority int, after time.Duration, c *Cause) {
	hash := q.slots.hash(item)
	q.mu.Lock()
	if q.phase == running {
		q.file(item, hash, priority, after, c)
	}
	q.unlock()
}

// file is put with q.mu held.
func (q *queue[T]) file(item T, hash uint64, priority int, after time.Duration, c *Cause) {
	s := q.slots.find(hash, item)
	if s == nil {
		s = q.newSlot(item, hash)
	}
	if s.state == idle {
		s.priority = priority
	}
	if c != nil {
		s.causes.add(c)
	}
	if after > 0 {
		q.meter.retries.Inc()
	}
	if s.state == ready { // nothing but the priority can change: no need to ask the clock
		if priority > s.priority {
			q.raise(s, priority)
		}
		return
	}
	now := q.now()
	if after > 0 {
		q.putDelayed(s, priority, now, now+int64(min(after, maxDelay)))
		return
	}
	q.putReady(s, priority, now)
}

func (q *queue[T]) putDelayed(s *slot[T], priority int, now, due int64) {
	switch s.state {
	case idle:
		q.seq++
		s.state, s.due, s.seq = waiting, due, q.seq
		q.delayed.push(s)
	case waiting:
		s.priority = max(s.priority, priority)
		if due >= s.due {
			return
		}
		s.due = due
		q.delayed.fix(s.heapIndex)
	}
	q.arm(now)
}

func (q *queue[T]) putReady(s *slot[T], priority int, now int64) {
	if s.state == waiting {
		q.delayed.remove(s)
	}
	s.priority = max(s.priority, priority)
	q.makeReady(s, now)
}

// makeReady counts the slot and lines it up, or parks it while a worker has
// its key.
func (q *queue[T]) makeReady(s *slot[T], since int64) {
	s.state, s.since = ready, since
	s.level = q.levelFor(s.priority)
	s.level.depth.Inc()
	q.meter.adds.Inc()
	q.nReady++
	if !s.inFlight {
		q.lineUp(s)
	}
}

func (q *queue[T]) lineUp(s *slot[T]) {
	s.level = q.levelFor(s.priority)
	s.level.turn.pushBack(s)
	q.age.pushBack(s)
}

// raise moves a ready slot to the end of a higher priority. Its age stays.
func (q *queue[T]) raise(s *slot[T], priority int) {
	from := s.level
	s.priority, s.level = priority, q.levelFor(priority)
	from.depth.Dec()
	s.level.depth.Inc()
	if !s.inFlight {
		from.turn.remove(s)
		s.level.turn.pushBack(s)
	}
	q.tidy(from)
}

// levelFor finds or makes the level of a priority.
func (q *queue[T]) levelFor(priority int) *level[T] {
	i := q.levels.find(priority)
	if i < len(q.levels) && q.levels[i].priority == priority {
		return q.levels[i]
	}
	l := &level[T]{priority: priority, depth: q.meter.depth(priority)}
	q.levels = append(q.levels, nil)
	copy(q.levels[i+1:], q.levels[i:])
	q.levels[i] = l
	return l
}

// tidy drops a level that ran empty when there are many.
func (q *queue[T]) tidy(l *level[T]) {
	if l.turn.head != nil || len(q.levels) <= keptLevels {
		return
	}
	i := q.levels.find(l.priority)
	if i == len(q.levels) || q.levels[i] != l {
		return
	}
	copy(q.levels[i:], q.levels[i+1:])
	q.levels[len(q.levels)-1] = nil
	q.levels = q.levels[:len(q.levels)-1]
}

// Get hands out the next key. It blocks until there is one or the queue is
// shut down. The caller must call Done with the key.
func (q *queue[T]) Get() (item T, shutdown bool) {
	t, shutdown := q.Take()
	return t.Key, shutdown
}

// GetWithPriority implements PriorityQueue.
func (q *queue[T]) GetWithPriority() (item T, priority int, shutdown bool) {
	t, shutdown := q.Take()
	return t.Key, t.Priority, shutdown
}

// Take is Get with all the queue knows about the key.
func (q *queue[T]) Take() (t Taken[T], shutdown bool) {
	q.mu.Lock()
	for {
		if t, waited, ok := q.take(q.now()); ok {
			q.unlock()
			q.meter.latency.Observe(seconds(waited))
			return t, false
		}
		if q.phase != running {
			q.unlock()
			return t, true
		}
		q.waiters++
		q.work.Wait()
		q.waiters--
		q.coming = false
	}
}

// Next is Finish and then Take, with one turn at the lock if a key is ready.
func (q *queue[T]) Next(last Taken[T]) (t Taken[T], shutdown bool) {
	q.mu.Lock()
	now := q.now()
	worked, landed := q.land(last.slot, now)
	t, waited, ok := q.take(now)
	q.unlock()
	if landed {
		q.meter.work.Observe(seconds(worked))
	}
	if !ok {
		return q.Take()
	}
	q.meter.latency.Observe(seconds(waited))
	return t, false
}

// take hands out the next slot, if there is one, and tells how long it waited.
// q.mu is held.
func (q *queue[T]) take(now int64) (t Taken[T], waited int64, ok bool) {
	if q.phase == running {
		q.promote(now)
	}
	s := q.pick(now)
	if s == nil {
		return t, 0, false
	}
	waited = q.handOut(s, now)
	return Taken[T]{Key: s.key, Priority: s.priority, causes: s.causes.hand(), slot: s}, waited, true
}

// pick chooses the next slot: the highest priority's first, but now and then
// the one that has been ready longest.
func (q *queue[T]) pick(now int64) *slot[T] {
	oldest := q.age.head
	if oldest == nil {
		return nil
	}
	s := q.levels.highest().turn.head
	if s != oldest {
		q.passed++
		if q.passed >= AgeShare && now-oldest.since >= int64(AgeAfter) {
			s = oldest
		}
	}
	if s == oldest {
		q.passed = 0
	}
	return s
}

// handOut moves a slot from ready to in flight and tells how long it waited.
func (q *queue[T]) handOut(s *slot[T], now int64) (waited int64) {
	s.level.turn.remove(s)
	q.age.remove(s)
	s.level.depth.Dec()
	q.tidy(s.level)
	q.nReady--
	s.state, s.level = idle, nil
	s.inFlight, s.started = true, now
	q.flying.pushBack(s)
	q.moved()
	q.arm(now)
	return now - s.since
}

// Done tells the queue that the worker has finished with a key it got. A key
// that was added meanwhile is lined up now. Done of any other key does
// nothing.
func (q *queue[T]) Done(item T) {
	hash := q.slots.hash(item)
	q.mu.Lock()
	q.finish(q.slots.find(hash, item))
}

// Finish is Done for a key that was taken, and spares looking for it.
func (q *queue[T]) Finish(t Taken[T]) {
	q.mu.Lock()
	q.finish(t.slot)
}

// finish is Done. It is called with q.mu held, and releases it.
func (q *queue[T]) finish(s *slot[T]) {
	worked, landed := q.land(s, q.now())
	q.unlock()
	if landed {
		q.meter.work.Observe(seconds(worked))
	}
}

// land ends a slot's flight, if it is in one, and tells how long that was.
// q.mu is held.
func (q *queue[T]) land(s *slot[T], now int64) (worked int64, ok bool) {
	if s == nil || !s.inFlight {
		return 0, false
	}
	worked = now - s.started
	q.flying.remove(s)
	s.inFlight = false
	switch s.state {
	case ready:
		q.lineUp(s)
	case idle:
		q.release(s)
	}
	q.moved()
	if q.phase == stopped {
		q.showRunning(now)
	}
	return worked, true
}

// moved notes progress. q.mu is held.
func (q *queue[T]) moved() {
	q.moves++
	if q.phase == draining {
		q.drained.Broadcast()
	}
}

// Forget makes the rate limiter forget a key's failures.
func (q *queue[T]) Forget(item T) { q.limiter.Forget(item) }

// NumRequeues tells how often the key was added rate-limited since it was
// last forgotten.
func (q *queue[T]) NumRequeues(item T) int { return q.limiter.NumRequeues(item) }

// Len counts the keys that are ready, also those a worker still has in hand
// from before. Delayed keys do not count.
func (q *queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.nReady
}

// newSlot makes the slot of a key, from the free list when it can.
func (q *queue[T]) newSlot(item T, hash uint64) *slot[T] {
	s := q.free
	if s == nil {
		s = &slot[T]{}
	} else {
		q.free = s.links[inTurn].next
		s.links[inTurn].next = nil
		q.nFree--
	}
	s.key, s.hash = item, hash
	q.slots.insert(s)
	return s
}

// release forgets a slot that is neither queued nor in flight.
func (q *queue[T]) release(s *slot[T]) {
	q.slots.remove(s)
	if q.slots.n == 0 && len(q.slots.chains) > roomyTable {
		q.slots.reset()
	}
	if q.nFree >= maxFree {
		return
	}
	var none T
	s.key, s.causes = none, causes{}
	s.links[inTurn].next = q.free
	q.free = s
	q.nFree++
}

func seconds(nanos int64) float64 { return time.Duration(nanos).Seconds() }
