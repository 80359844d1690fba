// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build etcd

package main

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"

	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

// work is what one run of n operations cost.
type work struct {
	perSecond float64
	cpu       float64 // microseconds per operation
	syncs     float64 // per operation
}

// measure runs f n times from each of several goroutines.
func (s *side) measure(goroutines, n int, f func(g, i int) error) (work, error) {
	var first atomic.Pointer[error]
	var wg sync.WaitGroup
	syncs, used, begun := s.syncs(), cpu(), time.Now()
	for g := range goroutines {
		wg.Go(func() {
			for i := range n {
				if err := f(g, i); err != nil {
					first.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	if err := first.Load(); err != nil {
		return work{}, fmt.Errorf("%s: %w", s.name, *err)
	}
	ops := float64(goroutines * n)
	return work{ops / took.Seconds(), float64((cpu() - used).Microseconds()) / ops, (s.syncs() - syncs) / ops}, nil
}

// create and update are one write each.
func (s *side) create(g, i int) error {
	ns, name := fmt.Sprintf("ns%d", g), fmt.Sprintf("p%d", i)
	return s.storage.Create(background, key(ns, name), pod(ns, name), &example.Pod{}, 0)
}

func (s *side) update(g, i int) error {
	ns, name := fmt.Sprintf("ns%d", g), fmt.Sprintf("p%d", i)
	return s.storage.GuaranteedUpdate(background, key(ns, name), &example.Pod{}, false, nil,
		storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
			p := obj.(*example.Pod)
			p.Annotations["changed"] = fmt.Sprint(i)
			return p, nil
		}), nil)
}

// writes measures creates and updates together.
func (s *side) writes(writers, each int) (work, error) {
	a, err := s.measure(writers, each, s.create)
	if err != nil {
		return work{}, err
	}
	b, err := s.measure(writers, each, s.update)
	if err != nil {
		return work{}, err
	}
	return work{2 / (1/a.perSecond + 1/b.perSecond), (a.cpu + b.cpu) / 2, (a.syncs + b.syncs) / 2}, nil
}

func writeRows(scale int) ([]Row, error) {
	var rows []Row
	for _, writers := range []int{8, 25} {
		results := make(map[string]work)
		for _, open := range []func() (*side, error){
			func() (*side, error) { return etcd(false) },
			func() (*side, error) { return ours(file.Memory) },
			func() (*side, error) { return ours(file.Relaxed) },
		} {
			s, err := open()
			if err != nil {
				return nil, err
			}
			w, err := s.writes(writers, 2000*scale/10/writers*2)
			s.close()
			if err != nil {
				return nil, err
			}
			results[s.name] = w
		}
		for _, mode := range []string{"memory", "relaxed"} {
			rows = append(rows,
				rate(fmt.Sprintf("writes, %d writers, %s", writers, mode), "1/s", results[mode].perSecond, results["etcd3"].perSecond, 2),
				cost(fmt.Sprintf("writes, %d writers, %s: CPU", writers, mode), "us", results[mode].cpu, results["etcd3"].cpu, 0))
		}
	}
	return rows, nil
}

func durableRows(scale int) ([]Row, error) {
	var rows []Row
	for _, writers := range []int{8, 25} {
		var results [2]work
		for i, open := range []func() (*side, error){
			func() (*side, error) { return ours(file.Durable) }, func() (*side, error) { return etcd(true) },
		} {
			s, err := open()
			if err != nil {
				return nil, err
			}
			results[i], err = s.writes(writers, 1000*scale/10/writers*2)
			s.close()
			if err != nil {
				return nil, err
			}
		}
		name := fmt.Sprintf("writes, %d writers, durable", writers)
		rows = append(rows,
			rate(name, "1/s", results[0].perSecond, results[1].perSecond, 1),
			cost(name+": fdatasync per write", "", results[0].syncs, results[1].syncs, 1),
			cost(name+": CPU", "us", results[0].cpu, results[1].cpu, 0.5))
	}
	return rows, nil
}

func readRows(scale int) ([]Row, error) {
	sides, err := both()
	if err != nil {
		return nil, err
	}
	defer closeAll(sides)
	const namespaces = 10
	var rows []Row
	have := 0
	for _, objects := range []int{1000, 10_000} {
		for _, s := range sides {
			for i := have; i < objects; i++ {
				ns, name := fmt.Sprintf("ns%d", i%namespaces), fmt.Sprintf("p%d", i/namespaces)
				if err := s.storage.Create(background, key(ns, name), pod(ns, name), nil, 0); err != nil {
					return nil, err
				}
			}
		}
		have = objects
		if objects == 1000 {
			r, err := compare(sides, "get", "1/s", 8, 200*scale, func(s *side) func(g, i int) error {
				return func(g, i int) error {
					return s.storage.Get(background, key(fmt.Sprintf("ns%d", i%namespaces), fmt.Sprintf("p%d", i%100)), storage.GetOptions{}, &example.Pod{})
				}
			})
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
		for _, l := range []struct {
			name, key string
			limit     int64
		}{{"whole", "/pods/", 0}, {"one namespace", "/pods/ns3/", 0}, {"pages of 100", "/pods/", 100}} {
			r, err := compare(sides, fmt.Sprintf("list %d, %s", objects, l.name), "1/s", 1, max(3, 2*scale), func(s *side) func(g, i int) error {
				return func(int, int) error { return s.list(l.key, l.limit) }
			})
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func (s *side) list(key string, limit int64) error {
	o := storage.ListOptions{Predicate: storage.Everything, Recursive: true}
	o.Predicate.Limit = limit
	for {
		var list example.PodList
		if err := s.storage.GetList(background, key, o, &list); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("%s is empty", key)
		}
		if o.Predicate.Continue = list.Continue; list.Continue == "" {
			return nil
		}
	}
}

// both gives ours in Memory mode and etcd without fsync.
func both() ([]*side, error) {
	a, err := ours(file.Memory)
	if err != nil {
		return nil, err
	}
	b, err := etcd(false)
	if err != nil {
		a.close()
		return nil, err
	}
	return []*side{a, b}, nil
}

func closeAll(sides []*side) {
	for _, s := range sides {
		s.close()
	}
}

func compare(sides []*side, name, unit string, goroutines, n int, f func(*side) func(g, i int) error) (Row, error) {
	var results [2]work
	for i, s := range sides {
		if err := f(s)(0, 0); err != nil { // warm
			return Row{}, err
		}
		var err error
		if results[i], err = s.measure(goroutines, n, f(s)); err != nil {
			return Row{}, err
		}
	}
	return rate(name, unit, results[0].perSecond, results[1].perSecond, 2), nil
}

// fanOutRows measures how fast events reach 100 watchers.
func fanOutRows(scale int) ([]Row, error) {
	const watchers = 100
	sides, err := both()
	if err != nil {
		return nil, err
	}
	defer closeAll(sides)
	var results [2]work
	events := 50 * scale
	for i, s := range sides {
		var wg sync.WaitGroup
		var open []watch.Interface
		for range watchers {
			w, err := s.storage.Watch(background, "/pods/", storage.ListOptions{Predicate: storage.Everything, Recursive: true})
			if err != nil {
				return nil, err
			}
			open = append(open, w)
		}
		used, begun := cpu(), time.Now()
		for _, w := range open {
			wg.Go(func() {
				for range events {
					if _, ok := <-w.ResultChan(); !ok {
						panic("a watch ended")
					}
				}
			})
		}
		if _, err := s.measure(1, events, s.create); err != nil {
			return nil, err
		}
		wg.Wait()
		n := float64(events * watchers)
		results[i] = work{perSecond: n / time.Since(begun).Seconds(), cpu: float64((cpu() - used).Microseconds()) / n}
		for _, w := range open {
			w.Stop()
		}
	}
	return []Row{
		rate("events to 100 watchers", "1/s", results[0].perSecond, results[1].perSecond, 2),
		cost("events to 100 watchers: CPU", "us", results[0].cpu, results[1].cpu, 0),
	}, nil
}

// reopenRow measures the start of a store that holds 100,000 objects. etcd has no such row: 3 s is the target.
func reopenRow(scale int) ([]Row, error) {
	dir, err := os.MkdirTemp("", "storagebench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := oursIn(dir, file.Relaxed)
	if err != nil {
		return nil, err
	}
	objects := 10_000 * scale
	if _, err := s.measure(8, objects/8, s.create); err != nil {
		return nil, err
	}
	s.close()
	begun := time.Now()
	if s, err = oursIn(dir, file.Durable); err != nil {
		return nil, err
	}
	took := time.Since(begun).Seconds()
	if n, err := s.storage.(*file.Storage).Count("/pods/"); err != nil || n != int64(objects) {
		return nil, fmt.Errorf("%d objects came back, want %d: %w", n, objects, err)
	}
	s.close()
	r := cost(fmt.Sprintf("reopen with %d objects (etcd: the limit)", objects), "s", took, 3, 1)
	return []Row{r}, nil
}
