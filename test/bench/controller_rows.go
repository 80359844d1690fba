// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	theirclient "sigs.k8s.io/controller-runtime/pkg/client"
	theircontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	theirhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	theirlog "sigs.k8s.io/controller-runtime/pkg/log/zap"
	theirpredicate "sigs.k8s.io/controller-runtime/pkg/predicate"
	theirreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	theirsource "sigs.k8s.io/controller-runtime/pkg/source"

	ourclient "github.com/wherry-dev/wherry/client"
	ourlog "github.com/wherry-dev/wherry/client/log/zap"
	ourcontroller "github.com/wherry-dev/wherry/controller"
	ourhandler "github.com/wherry-dev/wherry/controller/handler"
	ourpredicate "github.com/wherry-dev/wherry/controller/predicate"
	ourreconcile "github.com/wherry-dev/wherry/controller/reconcile"
	oursource "github.com/wherry-dev/wherry/controller/source"
)

// The sizes of the pipeline's rows.
const (
	distinctKeys   = 100_000
	duplicateKeys  = 2_000
	duplicateTimes = 50
	latencySamples = 2_000
	latencyTurns   = 20 // of each side, so that a noisy moment hits both
)

// handOver is an informer without a store: what is sent to it reaches the one
// handler it has. Both libraries take it.
type handOver struct {
	cache.SharedIndexInformer
	handler chan cache.ResourceEventHandler
}

func newHandOver() *handOver { return &handOver{handler: make(chan cache.ResourceEventHandler, 1)} }

func (h *handOver) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	h.handler <- handler
	return registered{}, nil
}

func (h *handOver) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return h.AddEventHandler(handler)
}

func (h *handOver) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (h *handOver) HasSynced() bool                                                 { return true }
func (h *handOver) IsStopped() bool                                                 { return false }

type registered struct{}

func (registered) HasSynced() bool                     { return true }
func (registered) HasSyncedChecker() cache.DoneChecker { return registered{} }
func (registered) Name() string                        { return "registered" }

func (registered) Done() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// pipeline is a running controller of one library.
type pipeline struct {
	handler cache.ResourceEventHandler
	last    chan struct{} // gets one whenever the key "last" is reconciled
	began   chan time.Time
	busy    atomic.Pointer[chan struct{}] // reconciles wait until it is closed
}

// reconciled is what both reconcilers do.
func (p *pipeline) reconciled(name string) {
	if busy := p.busy.Load(); busy != nil {
		<-*busy
	}
	switch name {
	case "last":
		p.last <- struct{}{}
	case "timed":
		p.began <- time.Now()
	}
}

const startTimeout = 10 * time.Second

func (p *pipeline) attach(informer *handOver, start func(context.Context) error) error {
	failed := make(chan error, 1)
	go func() { failed <- start(context.Background()) }()
	select {
	case p.handler = <-informer.handler:
		return nil
	case err := <-failed:
		return fmt.Errorf("the controller ended: %w", err)
	case <-time.After(startTimeout):
		return errors.New("the controller adds no handler")
	}
}

// logging is how the controllers of a row log; the zero value discards.
type logging struct{ zap bool }

func ourPipeline(workers int, l logging) (*pipeline, error) {
	p := &pipeline{last: make(chan struct{}, 1), began: make(chan time.Time, 1)}
	options := ourcontroller.Options{
		MaxConcurrentReconciles: workers,
		LogConstructor:          func(*ourreconcile.Request) logr.Logger { return logr.Discard() },
		Reconciler: ourreconcile.Func(func(_ context.Context, req ourreconcile.Request) (ourreconcile.Result, error) {
			p.reconciled(req.Name)
			return ourreconcile.Result{}, nil
		}),
	}
	if l.zap { // what the builder sets
		options.LogConstructor = nil
		options.Logger = ourlog.New(ourlog.WriteTo(io.Discard))
		options.LogValues = func(req *ourreconcile.Request) []any {
			if req == nil {
				return []any{"controllerGroup", "", "controllerKind", "Pod"}
			}
			return []any{"Pod", klog.KRef(req.Namespace, req.Name), "namespace", req.Namespace, "name", req.Name}
		}
	}
	c, err := ourcontroller.NewUnmanaged("pipeline", options)
	if err != nil {
		return nil, err
	}
	informer := newHandOver()
	if err := c.Watch(&oursource.Informer{
		Informer: informer, Handler: &ourhandler.EnqueueRequestForObject{},
		Predicates: []ourpredicate.TypedPredicate[ourclient.Object]{ourpredicate.ResourceVersionChangedPredicate{}, ourpredicate.GenerationChangedPredicate{}},
	}); err != nil {
		return nil, err
	}
	return p, p.attach(informer, c.Start)
}

func theirPipeline(workers int, l logging) (*pipeline, error) {
	p := &pipeline{last: make(chan struct{}, 1), began: make(chan time.Time, 1)}
	skip := true
	options := theircontroller.Options{
		MaxConcurrentReconciles: workers, SkipNameValidation: &skip,
		LogConstructor: func(*theirreconcile.Request) logr.Logger { return logr.Discard() },
		Reconciler: theirreconcile.Func(func(_ context.Context, req theirreconcile.Request) (theirreconcile.Result, error) {
			p.reconciled(req.Name)
			return theirreconcile.Result{}, nil
		}),
	}
	if l.zap { // what the builder sets
		base := theirlog.New(theirlog.WriteTo(io.Discard)).WithValues("controller", "pipeline", "controllerGroup", "", "controllerKind", "Pod")
		options.LogConstructor = func(req *theirreconcile.Request) logr.Logger {
			if req == nil {
				return base
			}
			return base.WithValues("Pod", klog.KRef(req.Namespace, req.Name), "namespace", req.Namespace, "name", req.Name)
		}
	}
	c, err := theircontroller.NewUnmanaged("pipeline", options)
	if err != nil {
		return nil, err
	}
	informer := newHandOver()
	if err := c.Watch(&theirsource.Informer{
		Informer: informer, Handler: &theirhandler.EnqueueRequestForObject{},
		Predicates: []theirpredicate.TypedPredicate[theirclient.Object]{theirpredicate.ResourceVersionChangedPredicate{}, theirpredicate.GenerationChangedPredicate{}},
	}); err != nil {
		return nil, err
	}
	return p, p.attach(informer, c.Start)
}

// through is the work of a row: so many events over so many keys, until the
// last of them is reconciled. If busy, every worker has its hands full until
// all events are delivered.
func through(keys int, busy bool, made func() (*pipeline, error)) func() (work, error) {
	return func() (work, error) {
		p, err := made()
		if err != nil {
			return nil, err
		}
		objects := make([]*corev1.Pod, keys)
		for i := range objects {
			objects[i] = &corev1.Pod{}
			objects[i].Namespace, objects[i].Name, objects[i].ResourceVersion = "team-00", fmt.Sprintf("web-%06d", i), "1"
		}
		last := &corev1.Pod{}
		last.Namespace, last.Name = "team-00", "last"
		return func(n int) error {
			idle := make(chan struct{})
			if busy {
				p.busy.Store(&idle)
			}
			for i := range n {
				p.handler.OnAdd(objects[i%keys], false)
			}
			p.handler.OnAdd(last, false)
			p.busy.Store(nil)
			close(idle)
			<-p.last
			return nil
		}, nil
	}
}

// latencies delivers n single events to an idle controller and returns how
// long each took to reach the reconciler, in microseconds.
func latencies(p *pipeline, n int) []float64 {
	const pause = 300 * time.Microsecond
	timed := &corev1.Pod{}
	timed.Namespace, timed.Name = "team-00", "timed"
	took := make([]float64, 0, n)
	for range n {
		began := time.Now()
		p.handler.OnAdd(timed, false)
		took = append(took, float64((<-p.began).Sub(began).Nanoseconds())/1000)
		time.Sleep(pause)
	}
	return took
}

func controllerRows() []row {
	pipelines := func(name string, n, keys, workers int, busy bool, l logging, targets map[unit]float64) row {
		return row{
			name: "pipeline: " + name, n: n, targets: targets,
			ours:   through(keys, busy, func() (*pipeline, error) { return ourPipeline(workers, l) }),
			theirs: through(keys, busy, func() (*pipeline, error) { return theirPipeline(workers, l) }),
		}
	}
	distinct := map[unit]float64{cpu: 0.2, allocs: 6.0 / 18, bytes: 0}
	quiet := map[unit]float64{cpu: 0.15, allocs: 8.0 / 47, bytes: 0.1}
	duplicates := map[unit]float64{cpu: 0.15, allocs: 0}
	return []row{
		pipelines("distinct keys, 1 worker", distinctKeys, distinctKeys, 1, false, logging{}, distinct),
		pipelines("distinct keys, 10 workers", distinctKeys, distinctKeys, 10, false, logging{}, distinct),
		pipelines("zap, nothing logged, 1 worker", distinctKeys, distinctKeys, 1, false, logging{zap: true}, quiet),
		pipelines("duplicates, 1 worker", duplicateKeys*duplicateTimes, duplicateKeys, 1, true, logging{}, duplicates),
		pipelines("duplicates, 10 workers", duplicateKeys*duplicateTimes, duplicateKeys, 10, true, logging{}, duplicates),
		pipelines("duplicates, racing, 1 worker", duplicateKeys*duplicateTimes, duplicateKeys, 1, false, logging{}, duplicates),
		pipelines("duplicates, racing, 10 workers", duplicateKeys*duplicateTimes, duplicateKeys, 10, false, logging{}, duplicates),
		{
			name: "pipeline: event to reconcile, idle", targets: map[unit]float64{p50: 0.5, p99: 0},
			fixed: func(int) (map[unit][2]float64, error) {
				ours, err := ourPipeline(1, logging{})
				if err != nil {
					return nil, err
				}
				theirs, err := theirPipeline(1, logging{})
				if err != nil {
					return nil, err
				}
				var a, b []float64
				for turn := range latencyTurns + 1 {
					x, y := latencies(ours, latencySamples/latencyTurns), latencies(theirs, latencySamples/latencyTurns)
					if turn > 0 { // the first is a warm-up
						a, b = append(a, x...), append(b, y...)
					}
				}
				slices.Sort(a)
				slices.Sort(b)
				at := func(all []float64, percent int) float64 { return all[len(all)*percent/100] }
				return map[unit][2]float64{p50: {at(a, 50), at(b, 50)}, p99: {at(a, 99), at(b, 99)}}, nil
			},
		},
	}
}
