// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log/zap"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
)

// BenchmarkPipeline takes events through predicates, handler, queue and a
// reconciler that does nothing. The rows are those of the issue: distinct keys
// and duplicates, a discarded logger and zap that writes nothing.
func BenchmarkPipeline(b *testing.B) {
	for _, row := range []struct {
		name    string
		keys    int
		log     logr.Logger
		workers int
	}{
		{"distinct/discard/1", 100_000, logr.Discard(), 1},
		{"distinct/discard/10", 100_000, logr.Discard(), 10},
		{"distinct/zap/1", 100_000, zap.New(zap.WriteTo(io.Discard)), 1},
		{"duplicates/discard/1", 2_000, logr.Discard(), 1},
		{"duplicates/discard/10", 2_000, logr.Discard(), 10},
	} {
		b.Run(row.name, func(b *testing.B) { pipeline(b, row.keys, row.log, row.workers) })
	}
}

// handOver is an informer without a store.
type handOver struct {
	toolscache.SharedIndexInformer
	handler atomic.Pointer[toolscache.ResourceEventHandler]
}

func (h *handOver) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	h.handler.Store(&handler)
	return nil, nil
}

func (h *handOver) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error { return nil }

func pipeline(b *testing.B, keys int, logger logr.Logger, workers int) {
	var done atomic.Int64
	last := make(chan struct{}, 1)
	var constructor func(*reconcile.Request) logr.Logger
	if logger.GetSink() == nil { // else no logger would mean the default one
		constructor = func(*reconcile.Request) logr.Logger { return logger }
	}
	c, err := NewUnmanaged("bench", Options{
		Logger: logger, MaxConcurrentReconciles: workers, LogConstructor: constructor,
		Reconciler: reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
			done.Add(1)
			if req.Name == "last" {
				last <- struct{}{}
			}
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		b.Fatal(err)
	}
	informer := &handOver{}
	if err := c.Watch(&source.Informer{
		Informer: informer, Handler: &handler.EnqueueRequestForObject{},
		Predicates: []predicate.Predicate{predicate.ResourceVersionChangedPredicate{}, predicate.GenerationChangedPredicate{}},
	}); err != nil {
		b.Fatal(err)
	}
	old, updated := make([]client.Object, keys), make([]client.Object, keys)
	for i := range keys {
		before := &corev1.Pod{}
		before.Namespace, before.Name, before.ResourceVersion, before.Generation = "a", fmt.Sprintf("pod-%d", i), "1", 1
		after := before.DeepCopy()
		after.ResourceVersion, after.Generation = "2", 2
		old[i], updated[i] = before, after
	}
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = c.Start(ctx) })
	for informer.handler.Load() == nil {
		runtime.Gosched()
	}
	events := *informer.handler.Load()
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		events.OnUpdate(old[n%keys], updated[n%keys])
	}
	events.OnAdd(pod("last"), false)
	<-last
	b.StopTimer()
	b.ReportMetric(float64(done.Load())/float64(b.N), "reconciles/event")
	cancel()
	wg.Wait()
}
