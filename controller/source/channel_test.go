// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

func generic(name string) event.GenericEvent { return event.GenericEvent{Object: pod(name, "1")} }

// TestChannel wants what was sent before the start to be delivered too, and
// the predicates to be asked.
func TestChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan event.GenericEvent, 2)
		events <- generic("before")
		q := newQueue(t)
		keep := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetName() != "skipped" })
		src := Channel(events, &handler.EnqueueRequestForObject{}, WithPredicates[client.Object, reconcile.Request](keep))
		_, stop := start(t, t.Context(), src, q)
		events <- generic("after")
		events <- generic("skipped")
		want(t, q, "before@0 generic:before", "after@0 generic:after")
		close(events)
		synctest.Wait()
		stop()
	})
}

// TestChannelShared wants two controllers to get every event, and one to stop
// without the other.
func TestChannelShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan event.GenericEvent)
		src := Channel(events, &handler.EnqueueRequestForObject{})
		one, two := newQueue(t), newQueue(t)
		_, stopOne := start(t, t.Context(), src, one)
		_, stopTwo := start(t, t.Context(), src, two)
		events <- generic("p")
		want(t, one, "p@0 generic:p")
		want(t, two, "p@0 generic:p")
		stopOne()
		events <- generic("q")
		want(t, one)
		want(t, two, "q@0 generic:q")
		stopTwo()
	})
}

// TestChannelRestart wants a restart to lose nothing that was received.
func TestChannelRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan event.GenericEvent)
		gate := make(chan struct{})
		h := handler.Funcs{GenericFunc: func(_ context.Context, e event.GenericEvent, q queue) {
			<-gate
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
		}}
		src := Channel(events, h)
		q := newQueue(t)
		ctx, cancel := context.WithCancel(t.Context())
		run, _ := start(t, ctx, src, q)
		for i := range 5 {
			events <- generic(fmt.Sprint(i))
		}
		synctest.Wait() // the first is in the handler, the others in the buffer
		cancel()
		close(gate)
		<-run.Done()
		if n := len(drain(q)); n == 5 {
			t.Log("all events were handled before the stop; nothing was left")
		}
		delivered := 5 - len(src.(*channel[client.Object, reconcile.Request]).left)
		_, stop := start(t, t.Context(), src, q)
		events <- generic("5")
		synctest.Wait()
		if got := drain(q); len(got) != 6-delivered {
			t.Errorf("after the restart %q is queued, want the %d events that were left and the new one", got, 5-delivered)
		}
		stop()
	})
}

// TestChannelBuffer wants a sender to wait only while the buffer is full.
func TestChannelBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 3
		events := make(chan event.GenericEvent)
		gate := make(chan struct{})
		h := handler.Funcs{GenericFunc: func(context.Context, event.GenericEvent, queue) { <-gate }}
		_, stop := start(t, t.Context(), Channel(events, h, WithBufferSize[client.Object, reconcile.Request](size)), newQueue(t))
		sent := 0
		go func() {
			for i := range 10 {
				events <- generic(fmt.Sprint(i))
				sent++
			}
		}()
		synctest.Wait()
		// One is in the handler, one with the reader, the rest in the buffer.
		if sent != size+2 {
			t.Errorf("%d events were taken while the handler was busy, want %d", sent, size+2)
		}
		close(gate)
		synctest.Wait()
		if sent != 10 {
			t.Errorf("%d events were taken, want 10", sent)
		}
		stop()
	})
}

// TestChannelOfAnything wants objects that are no API objects to work.
func TestChannelOfAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan event.TypedGenericEvent[int])
		h := handler.TypedFuncs[int, reconcile.Request]{GenericFunc: func(_ context.Context, e event.TypedGenericEvent[int], q queue) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: fmt.Sprint(e.Object)}})
		}}
		q := newQueue(t)
		_, stop := start(t, t.Context(), Channel(events, h), q)
		events <- event.TypedGenericEvent[int]{Object: 7}
		want(t, q, "7@0 generic:")
		stop()
	})
}
