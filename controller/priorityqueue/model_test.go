// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/controller/fault"
)

// model is a queue that is obviously right and slow: one slice, searched from
// end to end.
type model struct {
	items  []*modelItem
	flying map[int]bool
	seq    int
	passed int
}

type modelItem struct {
	key, priority int
	due           time.Time // zero once ready
	turn          int       // place among the ready of one priority
	since         time.Time
	age           int // place among all the ready
	blocked       bool
}

func (m *model) find(key int) *modelItem {
	for _, i := range m.items {
		if i.key == key {
			return i
		}
	}
	return nil
}

func (m *model) ready(i *modelItem, since time.Time) {
	m.seq++
	i.due, i.since, i.turn, i.age = time.Time{}, since, m.seq, m.seq
	i.blocked = m.flying[i.key]
}

func (m *model) add(now time.Time, key, priority int, after time.Duration) {
	i := m.find(key)
	if i == nil {
		m.seq++
		i = &modelItem{key: key, priority: priority, due: now.Add(after), turn: m.seq}
		m.items = append(m.items, i)
		if after <= 0 {
			m.ready(i, now)
		}
		return
	}
	raised := priority > i.priority
	i.priority = max(i.priority, priority)
	if i.due.IsZero() {
		if raised {
			m.seq++
			i.turn = m.seq
		}
		return
	}
	switch {
	case after <= 0:
		m.ready(i, now)
	case now.Add(after).Before(i.due):
		i.due = now.Add(after)
	}
}

// promote makes what is due ready, earliest first and first added first.
func (m *model) promote(now time.Time) {
	for {
		var next *modelItem
		for _, i := range m.items {
			if i.due.IsZero() || i.due.After(now) {
				continue
			}
			if next == nil || i.due.Before(next.due) || i.due.Equal(next.due) && i.turn < next.turn {
				next = i
			}
		}
		if next == nil {
			return
		}
		m.ready(next, next.due)
	}
}

func (m *model) get(now time.Time) (key, priority int, ok bool) {
	m.promote(now)
	var best, oldest *modelItem
	for _, i := range m.items {
		if !i.due.IsZero() || i.blocked {
			continue
		}
		if oldest == nil || i.age < oldest.age {
			oldest = i
		}
		if best == nil || i.priority > best.priority || i.priority == best.priority && i.turn < best.turn {
			best = i
		}
	}
	if best == nil {
		return 0, 0, false
	}
	if best != oldest {
		m.passed++
		if m.passed >= AgeShare && now.Sub(oldest.since) >= AgeAfter {
			best = oldest
		}
	}
	if best == oldest {
		m.passed = 0
	}
	for n, i := range m.items {
		if i == best {
			m.items = append(m.items[:n], m.items[n+1:]...)
			break
		}
	}
	m.flying[best.key] = true
	return best.key, best.priority, true
}

func (m *model) done(key int) {
	delete(m.flying, key)
	if i := m.find(key); i != nil && i.due.IsZero() {
		m.seq++
		i.blocked, i.turn, i.age = false, m.seq, m.seq
	}
}

func (m *model) len() (n int) {
	for _, i := range m.items {
		if i.due.IsZero() {
			n++
		}
	}
	return n
}

// TestModel runs random operations on the queue and on the model and wants
// them to agree on everything a caller can see.
func TestModel(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { compare(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func compare(t *testing.T, r *rand.Rand) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[int](firstRetry, lastRetry)
	q := newQueue[int](limiter, newMeter("", nil), fault.NewKeeper("", logr.Discard()))
	defer q.ShutDown()
	m := &model{flying: map[int]bool{}}
	keys := 1 + r.IntN(30)
	manyPriorities := r.IntN(4) == 0
	inHand := map[int]Taken[int]{}
	for step := range 1500 {
		key := r.IntN(keys)
		switch op := r.IntN(10); {
		case op < 5:
			priority := []int{-100, 0, 0, 10}[r.IntN(4)]
			if manyPriorities {
				priority = r.IntN(200) - 100
			}
			var after time.Duration
			if r.IntN(3) == 0 {
				after = time.Duration(r.IntN(3000)) * time.Millisecond
			}
			q.AddWithOpts(AddOpts{Priority: &priority, After: after}, key)
			m.add(time.Now(), key, priority, after)
		case op < 8:
			take(t, q, m, inHand, step, q.Take)
		case op < 9:
			finish(t, q, m, inHand, step, key, r.IntN(3))
		default:
			time.Sleep(time.Duration(r.IntN(4000)) * time.Millisecond)
			synctest.Wait()
			m.promote(time.Now())
		}
		check(t, q)
		if got, want := q.Len(), m.len(); got != want {
			t.Fatalf("step %d: Len is %d, want %d", step, got, want)
		}
	}
}

// finish ends a key in one of the ways there are.
func finish(t *testing.T, q *queue[int], m *model, inHand map[int]Taken[int], step, key, how int) {
	t.Helper()
	last, held := inHand[key]
	delete(inHand, key)
	if held {
		m.done(key)
	}
	switch {
	case how == 0 || !held:
		q.Done(key)
	case how == 1 || !m.has(time.Now()):
		q.Finish(last)
	default:
		take(t, q, m, inHand, step, func() (Taken[int], bool) { return q.Next(last) })
	}
}

// has tells whether a key can be handed out.
func (m *model) has(now time.Time) bool {
	m.promote(now)
	for _, i := range m.items {
		if i.due.IsZero() && !i.blocked {
			return true
		}
	}
	return false
}

// take gets the next key in the given way, which may block if there is none.
func take(t *testing.T, q *queue[int], m *model, inHand map[int]Taken[int], step int, get func() (Taken[int], bool)) {
	t.Helper()
	key, priority, ok := m.get(time.Now())
	if !ok {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.promote(q.now()); q.age.head != nil {
			t.Fatalf("step %d: %d is ready, want nothing", step, q.age.head.key)
		}
		return
	}
	got, shutdown := get()
	if shutdown || got.Key != key || got.Priority != priority {
		t.Fatalf("step %d: got %d with priority %d (shut down %t), want %d with %d", step, got.Key, got.Priority, shutdown, key, priority)
	}
	inHand[key] = got
}
