// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/controller/fault"
)

// crew is workers that each keep the key they take until they are told to go
// on.
type crew struct {
	q    *queue[int]
	mu   sync.Mutex
	held map[int]bool
	on   chan struct{} // lets one go on
	wg   sync.WaitGroup
}

func newCrew(q *queue[int], workers int) *crew {
	c := &crew{q: q, held: map[int]bool{}, on: make(chan struct{})}
	for range workers {
		c.wg.Go(c.work)
	}
	synctest.Wait()
	return c
}

func (c *crew) work() {
	t, shutdown := c.q.Take()
	for !shutdown {
		c.mu.Lock()
		c.held[t.Key] = true
		c.mu.Unlock()
		<-c.on
		c.mu.Lock()
		delete(c.held, t.Key)
		c.mu.Unlock()
		t, shutdown = c.q.Next(t)
	}
}

// end lets everybody go on for good, and waits for them.
func (c *crew) end() {
	close(c.on)
	c.q.ShutDown()
	c.wg.Wait()
}

// TestEveryWorkerIsWoken wants as many workers at work as there are keys,
// however the keys became ready: only one worker is woken by those who add, and
// each wakes the next.
func TestEveryWorkerIsWoken(t *testing.T) {
	const workers = 10
	all := make([]int, workers)
	for i := range all {
		all[i] = i
	}
	for name, fill := range map[string]func(*crew){
		"one by one": func(c *crew) {
			for _, key := range all {
				c.q.Add(key)
			}
		},
		"together":     func(c *crew) { c.q.AddWithOpts(AddOpts{}, all...) },
		"due together": func(c *crew) { c.q.AddWithOpts(AddOpts{After: time.Second}, all...); time.Sleep(time.Second) },
		"by many at once": func(c *crew) {
			for _, key := range all {
				c.wg.Go(func() { c.q.Add(key) })
			}
		},
		"added again while in work": func(c *crew) {
			c.q.AddWithOpts(AddOpts{}, all...)
			synctest.Wait()
			c.q.AddWithOpts(AddOpts{}, all...)
			for range all {
				c.on <- struct{}{}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(workqueue.DefaultTypedItemBasedRateLimiter[int](), newMeter("", nil), nil)
				c := newCrew(q, workers)
				fill(c)
				synctest.Wait()
				check(t, q)
				if len(c.held) != workers {
					t.Errorf("%d of %d keys are with a worker", len(c.held), workers)
				}
				c.end()
			})
		})
	}
}

// TestNoNeedlessWakeUp wants a worker that sleeps to be left alone by keys that
// a worker on its way to the queue will take.
func TestNoNeedlessWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(workqueue.DefaultTypedItemBasedRateLimiter[int](), newMeter("", nil), nil)
		c := newCrew(q, 3)
		q.mu.Lock() // a worker that is woken does not arrive
		for key := range 5 {
			q.file(key, q.slots.hash(key), 0, 0, nil)
			woken := q.wanted()
			if woken {
				q.coming = true
			}
			if want := key == 0; woken != want {
				t.Errorf("key %d wakes a worker: %t, want %t", key, woken, want)
			}
		}
		q.coming = false
		q.unlock()
		synctest.Wait()
		check(t, q)
		c.end()
	})
}

// observations is a histogram that keeps what it was told.
type observations struct {
	mu  sync.Mutex
	all []float64
}

func (o *observations) Observe(v float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, v)
}

// TestNextMeasures wants Next to tell how long the last key was in work before
// it waits for another, and how long that one waited.
func TestNextMeasures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var worked, waited observations
		m := newMeter("", nil)
		m.work, m.latency = &worked, &waited
		q := newQueue(workqueue.DefaultTypedItemBasedRateLimiter[int](), m, fault.NewKeeper("", logr.Discard()))
		q.Add(1)
		time.Sleep(time.Second)
		c := newCrew(q, 1)
		time.Sleep(time.Minute)
		c.on <- struct{}{}
		synctest.Wait()
		if got := worked.all; len(got) != 1 || got[0] != 60 {
			t.Errorf("the work took %v seconds, want [60]", got)
		}
		q.Add(2)
		synctest.Wait()
		if got := waited.all; len(got) != 2 || got[0] != 1 || got[1] != 0 {
			t.Errorf("the keys waited %v seconds, want [1 0]", got)
		}
		c.end()
	})
}

// TestNextEnds wants Next to finish the key it is given, whatever the queue's
// phase, and then to say that the queue is shut down.
func TestNextEnds(t *testing.T) {
	for name, end := range map[string]func(*queue[int]){
		"at once": (*queue[int]).ShutDown,
		"drained": (*queue[int]).ShutDownWithDrain,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(workqueue.DefaultTypedItemBasedRateLimiter[int](), newMeter("", nil), nil)
				q.Add(1)
				taken, _ := q.Take()
				ended := make(chan struct{})
				go func() {
					end(q)
					close(ended)
				}()
				synctest.Wait()
				if _, shutdown := q.Next(taken); !shutdown {
					t.Error("Next handed out a key of a queue that is shut down")
				}
				<-ended
				if q.flying.head != nil {
					t.Error("the last key is still in flight")
				}
			})
		})
	}
}
