// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build etcd

package program_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What the start is held to, against kube-apiserver with etcd in one process, in the same run.
const (
	startRounds = 5
	startRatio  = 0.30
	rssRatio    = 0.80
)

type figures struct {
	ready time.Duration
	cpu   time.Duration // at ready
	rss   int           // KiB, at ready
}

// TestStartAgainstEtcd compares starts, alternating, by the medians.
func TestStartAgainstEtcd(t *testing.T) {
	variants := map[string][]string{
		"etcd": {"--storage", "memory", "--stock", "--etcd", "--without", "all"},
		"ours": {"--storage", "durable"},
	}
	all := map[string][]figures{}
	for range startRounds {
		for name, args := range variants {
			if name == "ours" {
				args = append(slices.Clone(args), "--data-dir", t.TempDir())
			}
			begun := time.Now()
			p := start(t, args...)
			f := measure(t, p.cmd.Process.Pid)
			f.ready = time.Since(begun)
			all[name] = append(all[name], f)
			p.stop(t)
		}
	}
	medians := map[string]figures{}
	for name, list := range all {
		m := figures{
			ready: median(list, func(f figures) time.Duration { return f.ready }),
			cpu:   median(list, func(f figures) time.Duration { return f.cpu }),
			rss:   median(list, func(f figures) int { return f.rss }),
		}
		medians[name] = m
		t.Logf("%s: ready %v, CPU %v, RSS %d MiB (medians of %d)", name, m.ready.Round(time.Millisecond), m.cpu, m.rss>>10, startRounds)
	}
	ours, etcd := medians["ours"], medians["etcd"]
	ready, rss := ours.ready.Seconds()/etcd.ready.Seconds(), float64(ours.rss)/float64(etcd.rss)
	t.Logf("ratios: ready %.2f, CPU %.2f, RSS %.2f", ready, ours.cpu.Seconds()/etcd.cpu.Seconds(), rss)
	if ready > startRatio || rss > rssRatio {
		t.Errorf("ready %.2f, RSS %.2f; want at most %.2f and %.2f", ready, rss, startRatio, rssRatio)
	}
}

func median[T int | time.Duration](list []figures, of func(figures) T) T {
	var values []T
	for _, f := range list {
		values = append(values, of(f))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func measure(t *testing.T, pid int) figures {
	t.Helper()
	const ticks = 100 // a second, on every Linux there is
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	must(t, err)
	system, err := strconv.Atoi(fields[12])
	must(t, err)
	pages, err := strconv.Atoi(fields[21])
	must(t, err)
	return figures{cpu: time.Duration(user+system) * time.Second / ticks, rss: pages * os.Getpagesize() >> 10}
}
