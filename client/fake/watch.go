// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// watchBuffer is how many events a watch holds in its channel before it needs a goroutine to hold more.
const watchBuffer = 100

// watcher hands events to one reader. Writers are never blocked by a reader who is slow, or gone: what does not fit into the
// channel waits in a queue, which a goroutine empties that lives no longer than the queue. A watch that is read in time has
// no goroutine at all.
type watcher struct {
	result chan watch.Event
	done   chan struct{}
	remove func()
	unhook func() bool

	mu      sync.Mutex
	queue   []watch.Event // guarded by mu
	pumping bool          // guarded by mu
	stopped bool          // guarded by mu
}

var _ watch.Interface = &watcher{}

// newWatcher makes a watcher that stops with ctx. remove is called once, when it stops.
func newWatcher(ctx context.Context, remove func(*watcher)) *watcher {
	w := &watcher{result: make(chan watch.Event, watchBuffer), done: make(chan struct{})}
	w.remove = func() { remove(w) }
	if ctx != nil {
		w.unhook = context.AfterFunc(ctx, w.Stop)
	}
	return w
}

// send queues an event. It does not block.
func (w *watcher) send(e watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if !w.pumping {
		select {
		case w.result <- e:
			return
		default:
			w.pumping = true
			go w.pump()
		}
	}
	w.queue = append(w.queue, e)
}

// pump hands the queue over until it is empty or the watch is stopped, in which case it closes the channel.
func (w *watcher) pump() {
	for {
		w.mu.Lock()
		if w.stopped {
			w.mu.Unlock()
			close(w.result)
			return
		}
		if len(w.queue) == 0 {
			w.pumping = false
			w.mu.Unlock()
			return
		}
		e := w.queue[0]
		w.queue = w.queue[1:]
		w.mu.Unlock()
		select {
		case w.result <- e:
		case <-w.done:
		}
	}
}

// Stop ends the watch and closes its channel. It may be called more than once.
func (w *watcher) Stop() {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	w.stopped = true
	w.queue = nil
	close(w.done)
	if !w.pumping {
		close(w.result)
	}
	w.mu.Unlock()
	if w.unhook != nil {
		w.unhook()
	}
	w.remove()
}

// ResultChan gives the channel of events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }
