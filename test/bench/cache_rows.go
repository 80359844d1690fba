// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
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

// readers are both libraries' clients as a manager makes them, each over a filled cache of n pods; ours reads its
// own writes.
type readers struct {
	ours   ours.Client
	theirs theirs.Client
}

var (
	readersLock sync.Mutex
	readersOf   = map[int]*readers{}
)

// newReaders fills both caches once for each n; they live until the program ends.
func newReaders(n int) (*readers, error) {
	readersLock.Lock()
	defer readersLock.Unlock()
	if r := readersOf[n]; r != nil {
		return r, nil
	}
	server, err := newCanned(n)
	if err != nil {
		return nil, err
	}
	config := server.config()
	config.Transport = watched{server}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{podKind.GroupVersion()})
	mapper.Add(podKind, meta.RESTScopeNamespace)
	ctx := context.Background()
	our, err := ourcache.New(config, ourcache.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	their, err := theircache.New(config, theircache.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	go func() { _ = our.Start(ctx) }()
	go func() { _ = their.Start(ctx) }()
	if !our.WaitForCacheSync(ctx) || !their.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("a cache did not start")
	}
	on := true
	r := &readers{}
	if r.ours, err = ours.New(config, ours.Options{Scheme: scheme, Mapper: mapper,
		Cache: &ours.CacheOptions{Reader: our, EnableReadYourWritesConsistency: &on}}); err != nil {
		return nil, err
	}
	if r.theirs, err = theirs.New(config, theirs.Options{Scheme: scheme, Mapper: mapper, Cache: &theirs.CacheOptions{Reader: their}}); err != nil {
		return nil, err
	}
	key := types.NamespacedName{Namespace: "team-00", Name: "web-00000"}
	if err := r.ours.Get(ctx, key, &corev1.Pod{}); err != nil {
		return nil, err
	}
	if err := r.theirs.Get(ctx, key, &corev1.Pod{}); err != nil {
		return nil, err
	}
	readersOf[n] = r
	return r, nil
}

// cached is a row of reads from a cache of size pods.
func cached(name string, size, n int, targets map[unit]float64,
	ourOp func(context.Context, ours.Client) error, theirOp func(context.Context, theirs.Client) error) row {
	return row{
		name: "cache: " + name, n: n, targets: targets,
		ours: func() (work, error) {
			r, err := newReaders(size)
			return func(n int) error { return times(n, func() error { return ourOp(context.Background(), r.ours) }) }, err
		},
		theirs: func() (work, error) {
			r, err := newReaders(size)
			return func(n int) error { return times(n, func() error { return theirOp(context.Background(), r.theirs) }) }, err
		},
	}
}

// cacheRows are the cached reads. Instructions need valgrind and are not measured here; CPU stands beside.
func cacheRows() []row {
	key := types.NamespacedName{Namespace: "team-07", Name: "web-00007"}
	pod, theirPod := &corev1.Pod{}, &corev1.Pod{}
	rows := []row{
		cached("Get typed, copied", 500, 20_000, map[unit]float64{bytes: 0.86, allocs: 0, cpu: 0},
			func(ctx context.Context, c ours.Client) error { return c.Get(ctx, key, pod) },
			func(ctx context.Context, c theirs.Client) error { return c.Get(ctx, key, theirPod) }),
		cached("Get typed, not copied", 500, 100_000, map[unit]float64{bytes: 0, allocs: 0, cpu: 0},
			func(ctx context.Context, c ours.Client) error {
				return c.Get(ctx, key, pod, ours.UnsafeDisableDeepCopy)
			},
			func(ctx context.Context, c theirs.Client) error {
				return c.Get(ctx, key, theirPod, theirs.UnsafeDisableDeepCopy)
			}),
	}
	for _, s := range []struct {
		size, n         int
		all, byLabel, x float64
	}{{10_000, 2, 0.8, 0.3, 0.02}, {100_000, 1, 0.6, 0.15, 0}} {
		one := ours.MatchingLabels{"shard": "7"}
		theirOne := theirs.MatchingLabels{"shard": "7"}
		rows = append(rows,
			cached(fmt.Sprintf("List all %d, copied", s.size), s.size, s.n, map[unit]float64{bytes: 0.88, cpu: s.all},
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
				}))
	}
	return rows
}
