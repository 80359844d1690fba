// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// TestStartStop is CR#3538 and CR#3239: whenever the queue is shut down, all
// workers and all producers return.
func TestStartStop(t *testing.T) {
	const rounds, workers, producers = 500, 20, 4
	for round := range rounds {
		q := New[int]("")
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for {
					key, shutdown := q.Get()
					if shutdown {
						return
					}
					if key%7 == 0 {
						q.AddRateLimited(key)
					}
					q.Forget(key)
					q.Done(key)
				}
			})
		}
		for p := range producers {
			wg.Go(func() {
				for i := range 50 {
					q.Add(i)
					q.AddAfter(100+i, time.Duration(p)*time.Microsecond)
				}
			})
		}
		wg.Go(func() {
			if round%2 == 0 {
				q.ShutDownWithDrain()
			}
			q.ShutDown()
		})
		ended := make(chan struct{})
		go func() {
			wg.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("round %d: workers or producers hang", round)
		}
		if _, shutdown := q.Get(); !shutdown {
			t.Fatalf("round %d: Get after ShutDown hands out a key", round)
		}
	}
}

// TestNeverTwiceAtOnce lets many workers fight over few keys.
func TestNeverTwiceAtOnce(t *testing.T) {
	const keys, workers, adds = 5, 20, 5000
	q := New[int]("")
	var inHand [keys]atomic.Int32
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				key, shutdown := q.Get()
				if shutdown {
					return
				}
				if inHand[key].Add(1) != 1 {
					t.Errorf("key %d is with two workers", key)
				}
				inHand[key].Add(-1)
				q.Done(key)
			}
		})
	}
	for i := range adds {
		q.Add(i % keys)
	}
	q.ShutDownWithDrain()
	wg.Wait()
}

// TestGetBlocks wants Get to wait for a key, for a due time and for the end.
func TestGetBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]("")
		got := make(chan string)
		go func() {
			for {
				key, shutdown := q.Get()
				if shutdown {
					close(got)
					return
				}
				q.Done(key)
				got <- key
			}
		}()
		synctest.Wait()
		q.Add("now")
		if key := <-got; key != "now" {
			t.Errorf("got %q, want now", key)
		}
		began := time.Now()
		q.AddAfter("later", time.Hour)
		q.AddAfter("sooner", time.Minute)
		if key := <-got; key != "sooner" || time.Since(began) != time.Minute {
			t.Errorf("got %q after %s, want sooner after 1m", key, time.Since(began))
		}
		if key := <-got; key != "later" || time.Since(began) != time.Hour {
			t.Errorf("got %q after %s, want later after 1h", key, time.Since(began))
		}
		q.ShutDown()
		if _, ok := <-got; ok {
			t.Error("Get did not return at ShutDown")
		}
	})
}

// TestBoundedAge is CR#3496: a steady load of higher priority, more than the
// one worker can do, starves nothing.
func TestBoundedAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const low, urgent, pace = 20, 200, 100 * time.Millisecond
		q := New[int]("")
		defer q.ShutDown()
		priority := -100
		for key := range low {
			q.AddWithOpts(AddOpts{Priority: &priority}, -1-key)
		}
		for key := range urgent {
			q.Add(key)
		}
		began := time.Now()
		limit := AgeAfter + AgeShare*low*pace
		for seen := 0; seen < low; {
			key, _ := q.Get()
			time.Sleep(pace)
			q.Done(key)
			if key < 0 {
				seen++
			} else {
				q.Add(key) // never runs dry
			}
			if took := time.Since(began); took > limit+pace {
				t.Fatalf("after %s only %d of %d low keys were served; the bound is %s", took, seen, low, limit)
			}
		}
	})
}

// oddLimiter answers nonsense.
type oddLimiter struct {
	workqueue.TypedRateLimiter[string]
	when func(string) time.Duration
}

func (l oddLimiter) When(key string) time.Duration { return l.when(key) }

// TestOddLimiter wants a rate limiter that answers nonsense to be contained,
// and logged once.
func TestOddLimiter(t *testing.T) {
	for name, when := range map[string]func(string) time.Duration{
		"negative": func(string) time.Duration { return -5 * time.Second },
		"panics":   func(string) time.Duration { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines []string
				q := New("odd", func(o *Opts[string]) {
					o.RateLimiter = oddLimiter{when: when}
					o.Log = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
				})
				defer q.ShutDown()
				for range 3 {
					began := time.Now()
					q.AddRateLimited("the key")
					key, _ := q.Get()
					q.Done(key)
					if took := time.Since(began); took != time.Second {
						t.Errorf("the key came back after %s, want 1s", took)
					}
				}
				if len(lines) != 1 || !strings.Contains(lines[0], "the key") {
					t.Errorf("the lines are %q, want one with the key", lines)
				}
			})
		})
	}
}

// TestEndlessDelay wants a delay that is too long for the clock not to become
// a short one.
func TestEndlessDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(workqueue.DefaultTypedItemBasedRateLimiter[string](), newMeter("", nil), nil)
		defer q.ShutDown()
		q.AddAfter("k", 1<<63-1)
		time.Sleep(365 * 24 * time.Hour)
		if q.Len() != 0 {
			t.Error("a delay of 292 years was over after one")
		}
	})
}

// TestManyPriorities wants levels that ran empty to go when there are many.
func TestManyPriorities(t *testing.T) {
	q := newQueue(workqueue.DefaultTypedItemBasedRateLimiter[int](), newMeter("", nil), nil)
	defer q.ShutDown()
	const n = 1000
	for i := range n {
		p := (i * 7919) % n
		q.AddWithOpts(AddOpts{Priority: &p}, p)
	}
	for want := n - 1; want >= 0; want-- {
		if key, _ := q.Get(); key != want {
			t.Fatalf("got %d, want %d", key, want)
		}
		q.Done(want)
		if want%100 == 0 {
			check(t, q)
		}
	}
	if len(q.levels) > keptLevels+1 {
		t.Errorf("%d levels are left", len(q.levels))
	}
}

// TestSlotsAreGivenBack wants neither the table nor the free list to hold what
// a burst needed.
func TestSlotsAreGivenBack(t *testing.T) {
	q := newQueue(workqueue.DefaultTypedItemBasedRateLimiter[int](), newMeter("", nil), nil)
	defer q.ShutDown()
	for i := range roomyTable {
		q.Add(i)
	}
	for range roomyTable {
		key, _ := q.Get()
		q.Done(key)
	}
	if q.slots.n != 0 || len(q.slots.chains) != firstChains || q.nFree > maxFree {
		t.Errorf("after a burst: %d slots, %d chains, %d free", q.slots.n, len(q.slots.chains), q.nFree)
	}
}

// TestTraced wants every way to add through the face to carry its cause.
func TestTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(workqueue.DefaultTypedItemBasedRateLimiter[string](), newMeter("", nil), nil)
		defer q.ShutDown()
		for name, add := range map[string]func(*Traced[string]){
			"Add":            func(face *Traced[string]) { face.Add("k") },
			"AddAfter":       func(face *Traced[string]) { face.AddAfter("k", time.Second) },
			"AddRateLimited": func(face *Traced[string]) { face.AddRateLimited("k") },
			"AddWithOpts":    func(face *Traced[string]) { face.AddWithOpts(AddOpts{}, "k") },
		} {
			for _, serial := range []bool{true, false} {
				face := Trace[string](q, serial)
				face.Because("test", Deleted, types.NamespacedName{})
				add(face)
				taken, _ := q.Take()
				q.Done(taken.Key)
				causes, missed := taken.Causes()
				if len(causes) != 1 || causes[0].Source != "test" || causes[0].Event != Deleted || causes[0].Count != 1 || missed != 0 {
					t.Errorf("%s: the causes are %v and %d more", name, causes, missed)
				}
			}
		}
	})
}

// TestAllocations holds the queue to its budget: nothing per item once it is
// warm.
func TestAllocations(t *testing.T) {
	q := New("allocations", func(o *Opts[string]) { o.Log = logr.Discard() })
	defer q.ShutDown()
	key := "k"
	if n := testing.AllocsPerRun(1000, func() {
		q.Add(key)
		k, _ := q.Get()
		q.Forget(k)
		q.Done(k)
	}); n > 0 {
		t.Errorf("%v allocations per item", n)
	}
}
