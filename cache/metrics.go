// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wherry-dev/wherry/manager/metrics"
)

// sampled is how many objects of a store are measured to estimate the size of all.
const sampled = 32

// counts are what the metrics of a part are made of, beside what it holds.
type counts struct {
	reads, relists, fetches, live atomic.Uint64
	lastEvent                     atomic.Int64 // unix nanoseconds
}

// figure is one metric of a kind. Caches of several clusters add up.
type figure struct {
	desc  *prometheus.Desc
	typ   prometheus.ValueType
	value func(p *part) float64
	// newest makes the highest value count instead of the sum.
	newest bool
}

var kindLabels = []string{"group", "version", "kind", "form"}

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("wherry_cache_"+name, help, kindLabels, nil)
}

// figures is the table of all metrics.
var figures = []figure{
	{describe("objects", "Objects held in the cache."), prometheus.GaugeValue,
		func(p *part) float64 { return float64(p.store.size()) }, false},
	{describe("bytes", "Estimated size of the cached objects as the API server sends them, from a sample."), prometheus.GaugeValue,
		func(p *part) float64 { return p.store.estimate() }, false},
	{describe("last_event_timestamp_seconds", "When the cache last heard of the kind by list, event or bookmark."), prometheus.GaugeValue,
		func(p *part) float64 { return float64(p.counts.lastEvent.Load()) / 1e9 }, true},
	{describe("relists_total", "Times that the whole state was listed, the first included."), prometheus.CounterValue,
		func(p *part) float64 { return float64(p.counts.relists.Load()) }, false},
	{describe("reads_total", "Reads answered by the cache."), prometheus.CounterValue,
		func(p *part) float64 { return float64(p.counts.reads.Load()) }, false},
	{describe("fetches_total", "Objects asked of the API server because the outcome of an own write was not known."), prometheus.CounterValue,
		func(p *part) float64 { return float64(p.counts.fetches.Load()) }, false},
	{describe("live_reads_total", "Reads that went to the API server because the cache lagged behind own writes."), prometheus.CounterValue,
		func(p *part) float64 { return float64(p.counts.live.Load()) }, false},
	{describe("overlay_keys", "Objects of which own writes have not come back by watch yet."), prometheus.GaugeValue,
		func(p *part) float64 { return float64(p.overlay.size()) }, false},
	{describe("stuck", "1 while the watch is so far behind own writes that reads go to the API server."), prometheus.GaugeValue,
		func(p *part) float64 {
			if p.overlay.stuck.Load() {
				return 1
			}
			return 0
		}, true},
}

// running is the collector of all caches that are started, registered when the first is.
var running collector

type collector struct {
	once   sync.Once
	mu     sync.Mutex
	caches map[*informerCache]bool
}

func (c *collector) add(cache *informerCache) {
	c.once.Do(func() {
		if err := metrics.Registry.Register(c); err != nil {
			cache.log.Error(err, "The metrics of the cache can not be registered")
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caches == nil {
		c.caches = map[*informerCache]bool{}
	}
	c.caches[cache] = true
}

func (c *collector) remove(cache *informerCache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.caches, cache)
}

// Describe tells the metrics' names.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range figures {
		out <- f.desc
	}
}

// Collect reads the figures of all kinds.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	type row struct {
		key  entryKey
		form string
	}
	parts := map[row][]*part{}
	c.mu.Lock()
	for cache := range c.caches {
		for _, e := range cache.all() {
			for _, p := range e.readParts() {
				r := row{entryKey{e.gvk, e.family}, p.set.form.String()}
				parts[r] = append(parts[r], p)
			}
		}
	}
	c.mu.Unlock()
	for r, group := range parts {
		for _, f := range figures {
			total := 0.0
			for _, p := range group {
				if v := f.value(p); f.newest {
					total = max(total, v)
				} else {
					total += v
				}
			}
			out <- prometheus.MustNewConstMetric(f.desc, f.typ, total, r.key.gvk.Group, r.key.gvk.Version, r.key.gvk.Kind, r.form)
		}
	}
}

// readParts returns the parts that reads are answered from.
func (e *entry) readParts() []*part {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil {
		return nil
	}
	return e.current.parts
}

// estimate tells the size of all objects from that of a few.
func (s *store) estimate() float64 {
	s.mu.RLock()
	var sample []any
	n := len(s.items)
	for _, it := range s.items { // in random order
		if len(sample) == sampled {
			break
		}
		sample = append(sample, it.obj)
	}
	s.mu.RUnlock()
	if len(sample) == 0 {
		return 0
	}
	total := 0
	for _, obj := range sample {
		if sized, ok := obj.(interface{ Size() int }); ok {
			total += sized.Size()
		} else if data, err := json.Marshal(obj); err == nil {
			total += len(data)
		}
	}
	return float64(total) / float64(len(sample)) * float64(n)
}
