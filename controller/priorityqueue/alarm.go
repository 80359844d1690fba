// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import "time"

// alarm is the queue's one timer. It rings for the delayed slots and, while
// keys are in flight, to show how long they have been there. It is guarded by
// the queue's lock.
type alarm struct {
	timer *time.Timer
	at    int64
	set   bool
}

// showEvery is how often the metrics of running work are brought up to date.
const showEvery = 500 * time.Millisecond

// never is later than any due time.
const never = int64(1<<63 - 1)

// promote makes every slot ready that is due by now. q.mu is held.
func (q *queue[T]) promote(now int64) {
	for len(q.delayed) > 0 && q.delayed[0].due <= now {
		s := q.delayed[0]
		q.delayed.remove(s)
		q.makeReady(s, s.due)
	}
}

// arm sees to it that the timer rings when there is something to do next. A
// timer that rings too early only arms itself again, so it is set anew only
// when it would ring too late. q.mu is held.
func (q *queue[T]) arm(now int64) {
	if q.phase != running {
		return
	}
	next := never
	if len(q.delayed) > 0 {
		next = q.delayed[0].due
	}
	if q.flying.head != nil && q.meter.shows() {
		next = min(next, now+int64(showEvery))
	}
	if next == never || q.alarm.set && q.alarm.at <= next {
		return
	}
	q.alarm.set, q.alarm.at = true, next
	wait := time.Duration(next - now)
	if q.alarm.timer == nil {
		q.alarm.timer = time.AfterFunc(wait, q.ring)
		return
	}
	q.alarm.timer.Reset(wait)
}

// ring runs when the timer expires.
func (q *queue[T]) ring() {
	q.mu.Lock()
	defer q.unlock()
	if q.phase != running {
		return
	}
	q.alarm.set = false
	now := q.now()
	q.promote(now)
	q.showRunning(now)
	q.arm(now)
}

// showRunning shows how long the keys in flight have been there, all together
// and the longest. q.mu is held.
func (q *queue[T]) showRunning(now int64) {
	if !q.meter.shows() {
		return
	}
	var total, longest float64
	for s := q.flying.head; s != nil; s = s.links[inTurn].next {
		d := seconds(now - s.started)
		total += d
		longest = max(longest, d)
	}
	q.meter.unfinished.Set(total)
	q.meter.longest.Set(longest)
}
