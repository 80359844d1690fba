// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	theircache "sigs.k8s.io/controller-runtime/pkg/cache"
	theirs "sigs.k8s.io/controller-runtime/pkg/client"

	ourcache "github.com/wherry-dev/wherry/cache"
	ours "github.com/wherry-dev/wherry/client"
)

// watched is canned for caches: lists are answered, streamed lists refused, and watches stay open in silence.
type watched struct{ *canned }

func (w watched) RoundTrip(req *http.Request) (*http.Response, error) {
	q := req.URL.Query()
	if q.Get("watch") == "" {
		return w.canned.RoundTrip(req)
	}
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {typeJSON}}, Request: req}
	if q.Get("sendInitialEvents") != "" {
		res.StatusCode = http.StatusUnprocessableEntity
		res.Body = io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
		return res, nil
	}
	silent, end := io.Pipe()
	context.AfterFunc(req.Context(), func() { _ = end.CloseWithError(req.Context().Err()) })
	res.Body = silent
	return res, nil
}

// Each library's clients as a manager makes them, over a cache of so many pods that is filled once and lives until the
// program ends. Ours read their own writes, but for those in quiet, which have that switched off.
var (
	ourReaders   = readers[ours.Client]{make: newOurs(true), known: map[int]ours.Client{}}
	quietReaders = readers[ours.Client]{make: newOurs(false), known: map[int]ours.Client{}}
	theirReaders = readers[theirs.Client]{make: newTheirs, known: map[int]theirs.Client{}}
)

type readers[C any] struct {
	make  func(setting) (C, error)
	mu    sync.Mutex
	known map[int]C
}

// of returns the client of a cache of n pods.
func (r *readers[C]) of(n int) (C, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.known[n]; ok {
		return c, nil
	}
	s, err := newSetting(n)
	if err != nil {
		return *new(C), err
	}
	c, err := r.make(s)
	s.server.object, s.server.list = nil, nil // a filled cache asks no more, and a program has no server in its heap
	if err == nil {
		r.known[n] = c
	}
	return c, err
}

// setting is what a cache is made of.
type setting struct {
	server *canned
	config *rest.Config
	scheme *runtime.Scheme
	mapper meta.RESTMapper
}

func newSetting(n int) (setting, error) {
	server, err := newCanned(n)
	if err != nil {
		return setting{}, err
	}
	s := setting{server: server, config: server.config(), scheme: runtime.NewScheme()}
	s.config.Transport = watched{server}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{podKind.GroupVersion()})
	mapper.Add(podKind, meta.RESTScopeNamespace)
	s.mapper = mapper
	return s, corev1.AddToScheme(s.scheme)
}

var errNotStarted = errors.New("the cache did not start")

// aPod is in every cache.
var aPod = types.NamespacedName{Namespace: "team-00", Name: "web-00000"}

func newOurs(readOwnWrites bool) func(setting) (ours.Client, error) {
	return func(s setting) (ours.Client, error) {
		ctx := context.Background()
		cache, err := ourcache.New(s.config, ourcache.Options{Scheme: s.scheme, Mapper: s.mapper})
		if err != nil {
			return nil, err
		}
		go func() { _ = cache.Start(ctx) }()
		if !cache.WaitForCacheSync(ctx) {
			return nil, errNotStarted
		}
		c, err := ours.New(s.config, ours.Options{Scheme: s.scheme, Mapper: s.mapper,
			Cache: &ours.CacheOptions{Reader: cache, EnableReadYourWritesConsistency: &readOwnWrites}})
		if err != nil {
			return nil, err
		}
		return c, c.Get(ctx, aPod, &corev1.Pod{})
	}
}

func newTheirs(s setting) (theirs.Client, error) {
	ctx := context.Background()
	cache, err := theircache.New(s.config, theircache.Options{Scheme: s.scheme, Mapper: s.mapper})
	if err != nil {
		return nil, err
	}
	go func() { _ = cache.Start(ctx) }()
	if !cache.WaitForCacheSync(ctx) {
		return nil, errNotStarted
	}
	c, err := theirs.New(s.config, theirs.Options{Scheme: s.scheme, Mapper: s.mapper, Cache: &theirs.CacheOptions{Reader: cache}})
	if err != nil {
		return nil, err
	}
	return c, c.Get(ctx, aPod, &corev1.Pod{})
}

// cached is a row of reads from a cache of size pods.
func cached(name string, size, n int, targets map[unit]float64,
	ourOp func(context.Context, ours.Client) error, theirOp func(context.Context, theirs.Client) error) row {
	return row{
		name: "cache: " + name, n: n, targets: targets,
		ours:   repeated(&ourReaders, size, ourOp),
		theirs: repeated(&theirReaders, size, theirOp),
	}
}

// repeated prepares one side of a row.
func repeated[C any](r *readers[C], size int, op func(context.Context, C) error) func() (work, error) {
	return func() (work, error) {
		c, err := r.of(size)
		return func(n int) error { return times(n, func() error { return op(context.Background(), c) }) }, err
	}
}

// counting has the instructions of a row counted, over n operations.
func (r row) counting(n int, target float64) row {
	r.counted = n
	r.targets[instr] = target
	return r
}

// The sizes and counts of the rows whose instructions are counted.
const (
	countedPods   = 500
	countedGets   = 20_000
	countedShares = 100_000
	countedLists  = 40
)

// wholeLists is how often a sample lists everything: it begins with a collected heap, and what the lists leave behind has
// to be collected, as in a program.
const wholeLists = 4

// countedRows are the reads whose instructions have a target.
func countedRows() []row {
	key := types.NamespacedName{Namespace: "team-07", Name: "web-00007"}
	pod, theirPod := &corev1.Pod{}, &corev1.Pod{}
	return []row{
		cached("Get typed, copied", countedPods, countedGets, map[unit]float64{bytes: 0.86, allocs: 0, cpu: 0},
			func(ctx context.Context, c ours.Client) error { return c.Get(ctx, key, pod) },
			func(ctx context.Context, c theirs.Client) error { return c.Get(ctx, key, theirPod) }).counting(countedGets, 0.83),
		cached("Get typed, not copied", countedPods, countedShares, map[unit]float64{bytes: 0, allocs: 0, cpu: 0},
			func(ctx context.Context, c ours.Client) error {
				return c.Get(ctx, key, pod, ours.UnsafeDisableDeepCopy)
			},
			func(ctx context.Context, c theirs.Client) error {
				return c.Get(ctx, key, theirPod, theirs.UnsafeDisableDeepCopy)
			}).counting(countedShares, 0.20),
		cached("List all 500, copied", countedPods, countedLists, map[unit]float64{bytes: 0.88, allocs: 0, cpu: 0},
			func(ctx context.Context, c ours.Client) error { return c.List(ctx, &corev1.PodList{}) },
			func(ctx context.Context, c theirs.Client) error { return c.List(ctx, &corev1.PodList{}) }).counting(countedLists, 0),
	}
}

// ownWritesRows are what reading one's own writes costs while nothing is pending: "theirs" is our own client with it
// switched off.
func ownWritesRows() []row {
	pod, key := &corev1.Pod{}, types.NamespacedName{Namespace: "team-07", Name: "web-00007"}
	beside := func(name string, n, counted int, op func(context.Context, ours.Client) error) row {
		r := row{name: "cache: own writes, on against off, " + name, n: n, targets: map[unit]float64{bytes: 0, allocs: 1.03, cpu: 0},
			ours: repeated(&ourReaders, countedPods, op), theirs: repeated(&quietReaders, countedPods, op)}
		return r.counting(counted, 1.03)
	}
	return []row{
		beside("Get", countedShares, 2*countedShares, func(ctx context.Context, c ours.Client) error {
			return c.Get(ctx, key, pod, ours.UnsafeDisableDeepCopy)
		}),
		beside("List of 5", countedGets, countedGets, func(ctx context.Context, c ours.Client) error {
			return c.List(ctx, &corev1.PodList{}, ours.MatchingLabels{"shard": "7"}, ours.UnsafeDisableDeepCopy)
		}),
	}
}

// cacheRows are the cached reads.
func cacheRows() []row {
	rows := append(countedRows(), ownWritesRows()...)
	for _, s := range []struct {
		size, n         int
		all, byLabel, x float64
	}{{10_000, 2, 0.8, 0.3, 0.02}, {100_000, 1, 0.6, 0.15, 0}} {
		one := ours.MatchingLabels{"shard": "7"}
		theirOne := theirs.MatchingLabels{"shard": "7"}
		for _, r := range []row{
			cached(fmt.Sprintf("List all %d, copied", s.size), s.size, wholeLists, map[unit]float64{bytes: 0.88, cpu: s.all},
				func(ctx context.Context, c ours.Client) error { return c.List(ctx, &corev1.PodList{}) },
				func(ctx context.Context, c theirs.Client) error { return c.List(ctx, &corev1.PodList{}) }),
			cached(fmt.Sprintf("List 1%% of %d by label, copied", s.size), s.size, 20*s.n, map[unit]float64{cpu: s.byLabel},
				func(ctx context.Context, c ours.Client) error { return c.List(ctx, &corev1.PodList{}, one) },
				func(ctx context.Context, c theirs.Client) error { return c.List(ctx, &corev1.PodList{}, theirOne) }),
			cached(fmt.Sprintf("List 1%% of %d by label, not copied", s.size), s.size, 100*s.n, map[unit]float64{cpu: s.x},
				func(ctx context.Context, c ours.Client) error {
					return c.List(ctx, &corev1.PodList{}, one, ours.UnsafeDisableDeepCopy)
				},
				func(ctx context.Context, c theirs.Client) error {
					return c.List(ctx, &corev1.PodList{}, theirOne, theirs.UnsafeDisableDeepCopy)
				}),
		} {
			r.alone = true // 100,000 objects are a heap to mark
			rows = append(rows, r)
		}
	}
	return rows
}
