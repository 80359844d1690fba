// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Event says what kind of thing made somebody add a key.
type Event uint8

// The events, in the order in which an object's life shows them.
const (
	Unknown Event = iota
	Initial       // the object was there when watching began
	Created
	Updated
	Resynced // an update that changed nothing
	Deleted
	Generic
	Requeued // the reconciler asked for it
	Retried  // the last reconcile failed
)

var eventNames = [...]string{"unknown", "initial", "created", "updated", "resynced", "deleted", "generic", "requeued", "retried"}

func (e Event) String() string {
	if int(e) < len(eventNames) {
		return eventNames[e]
	}
	return eventNames[Unknown]
}

// Cause is one reason why a key was added. Causes with the same source and
// event are counted together and keep the object seen last.
type Cause struct {
	Source string
	Event  Event
	Object types.NamespacedName
	Count  int
}

// MaxCauses is how many different causes are kept beside a key. The first
// ones win, because they are what made the key ready; the rest is counted.
const MaxCauses = 4

// causes is a bounded set. The first cause lies in the slot itself: most keys
// have one.
type causes struct {
	first  Cause
	more   []Cause
	missed int
}

func (cs *causes) add(c *Cause) {
	if c.Source == "" {
		return
	}
	if cs.first.Count == 0 {
		cs.first, cs.first.Count = *c, 1
		return
	}
	if cs.first.merge(c) {
		return
	}
	for i := range cs.more {
		if cs.more[i].merge(c) {
			return
		}
	}
	if len(cs.more) == MaxCauses-1 {
		cs.missed++
		return
	}
	cs.more = append(cs.more, *c)
	cs.more[len(cs.more)-1].Count = 1
}

func (c *Cause) merge(other *Cause) bool {
	if c.Event != other.Event || c.Source != other.Source {
		return false
	}
	c.Object = other.Object
	c.Count++
	return true
}

// hand gives the causes away and starts anew.
func (cs *causes) hand() causes {
	handed := *cs
	*cs = causes{}
	return handed
}

// Taken is a key as a worker gets it.
type Taken[T comparable] struct {
	Key      T
	Priority int
	causes   causes
	slot     *slot[T]
}

// Causes lists why the key was added since it was last taken, first cause
// first, at most MaxCauses. Missed counts the causes beyond.
func (t Taken[T]) Causes() (list []Cause, missed int) {
	if t.causes.first.Count == 0 {
		return nil, 0
	}
	return append([]Cause{t.causes.first}, t.causes.more...), t.causes.missed
}

// Causal is a queue that remembers causes. Those that New makes do.
type Causal[T comparable] interface {
	PriorityQueue[T]

	// AddWithCause is AddWithOpts for one key, and remembers why.
	AddWithCause(o AddOpts, c Cause, item T)

	// Take is GetWithPriority with all the queue knows about the key.
	Take() (t Taken[T], shutdown bool)

	// Finish is Done for a key that was taken. It must be called once.
	Finish(t Taken[T])

	// Next is Finish of the last key and then Take, in one step. The zero
	// Taken finishes nothing.
	Next(last Taken[T]) (t Taken[T], shutdown bool)
}

// Traced is a face of a queue that adds every key with the cause set last.
// A source has one and sets it before it calls its handler.
type Traced[T comparable] struct {
	Causal[T]

	serial bool
	mu     sync.Mutex // unless serial
	cause  Cause
	own    *queue[T] // Causal, if New made it: spares a copy of the cause
}

// Trace makes a face of q for one source. It is safe for concurrent use; a
// handler that adds later than it was called may name a later cause. serial
// promises that the handler adds only while it is called, and is called once
// at a time: then it takes no lock.
func Trace[T comparable](q Causal[T], serial bool) *Traced[T] {
	own, _ := q.(*queue[T])
	return &Traced[T]{Causal: q, serial: serial, own: own}
}

// Because sets the cause of the adds that follow.
func (t *Traced[T]) Because(source string, e Event, object types.NamespacedName) {
	if !t.serial {
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	t.cause.Source, t.cause.Event, t.cause.Object = source, e, object
}

func (t *Traced[T]) why() Cause {
	if !t.serial {
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	return t.cause
}

// Add implements workqueue.TypedInterface.
func (t *Traced[T]) Add(item T) {
	if t.own == nil {
		t.AddWithCause(AddOpts{}, t.why(), item)
		return
	}
	if !t.serial {
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	t.own.put(item, 0, 0, &t.cause)
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (t *Traced[T]) AddAfter(item T, d time.Duration) {
	t.AddWithCause(AddOpts{After: d}, t.why(), item)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (t *Traced[T]) AddRateLimited(item T) {
	t.AddWithCause(AddOpts{RateLimited: true}, t.why(), item)
}

// AddWithOpts implements PriorityQueue.
func (t *Traced[T]) AddWithOpts(o AddOpts, items ...T) {
	why := t.why()
	for _, item := range items {
		t.AddWithCause(o, why, item)
	}
}
