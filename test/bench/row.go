// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// A unit is what a figure counts.
type unit string

const (
	cpu    unit = "CPU/op"    // microseconds of process CPU time; timed
	allocs unit = "allocs/op" // exact
	bytes  unit = "B/op"      // exact
	size   unit = "MB"        // exact: stripped binary
	p50    unit = "p50 us"    // timed: half of all take less
	p99    unit = "p99 us"    // timed: all but one in a hundred take less
	count  unit = "count"     // exact
	instr  unit = "instr/op"  // exact within a percent, by valgrind; not measured without it
	begin  unit = "start us"  // timed: from the start of the process
	peak   unit = "peak MB"   // varies by a few percent: the most memory the process had at once (VmHWM); needs Linux
	build  unit = "CPU s"     // timed: the go command and all it starts

	wall     unit = "wall ms"  // timed
	requests unit = "requests" // counted at the server; how often a status is written depends on timing
)

// order is how a row's units are shown.
var order = []unit{instr, begin, cpu, allocs, bytes, size, count, peak, build, p50, p99, wall, requests}

// exact units are the same in each run.
func (u unit) exact() bool {
	return u == allocs || u == bytes || u == size || u == count || u == instr
}

// kind says how far a figure of the unit can be trusted: exact, timed on a machine that others use as well, or neither.
func (u unit) kind() string {
	switch {
	case u.exact():
		return "exact"
	case u == peak || u == requests:
		return "varies"
	}
	return "timed"
}

// row is one piece of work done by both libraries.
type row struct {
	name string
	// n is how many operations one round does.
	n int
	// targets are the ratios to reach, ours to theirs, by unit; only units with
	// a target are reported, zero means reported without one.
	targets map[unit]float64
	// ours and theirs make the work ready and return what does it n times.
	ours, theirs func() (work, error)
	// alone has each side run in a process of its own: what one keeps in memory is not marked on the other's account.
	alone bool
	// counted is how many operations instructions are counted over; their sum should be some 100 million, far more
	// than what one start of a program differs from another.
	counted int
	// fixed, instead of ours and theirs, gives figures that are not run n times.
	fixed func(rounds int) (map[unit][2]float64, error)
	// onDemand rows take minutes: they run only when they are asked for by name.
	onDemand bool
}

// work does n operations.
type work func(n int) error

// result is one figure of a row, for both libraries.
type result struct {
	Name   string  `json:"name"`
	Unit   unit    `json:"unit"`
	Exact  bool    `json:"exact"`
	Ours   float64 `json:"ours"`
	Theirs float64 `json:"theirs"`
	Ratio  float64 `json:"ratio"`
	Target float64 `json:"target,omitempty"`
	Hit    bool    `json:"hit"`
	// Missing is why there are no figures.
	Missing string `json:"missing,omitempty"`
}

var heading = fmt.Sprintf("%-44s %-10s %-6s %12s %12s %7s %7s", "row", "unit", "", "ours", "theirs", "ratio", "target")

func (r result) String() string {
	if r.Missing != "" {
		return fmt.Sprintf("%-44s %-10s %-6s %s", r.Name, r.Unit, r.Unit.kind(), r.Missing)
	}
	target := "-"
	if r.Target > 0 {
		target = fmt.Sprintf("%.2f", r.Target)
	}
	return fmt.Sprintf("%-44s %-10s %-6s %12.1f %12.1f %7.2f %7s %s", r.Name, r.Unit, r.Unit.kind(), r.Ours, r.Theirs, r.Ratio, target, r.verdict())
}

// verdict is whether the target was reached, "" without one.
func (r result) verdict() string {
	switch {
	case r.Target == 0:
		return ""
	case r.Hit:
		return "hit"
	}
	return "miss"
}

// measure runs the row and gives a result for each unit that has a target.
func (r row) measure(rounds int) ([]result, error) {
	figures, err := r.figures(rounds)
	if err != nil {
		return nil, err
	}
	var out []result
	if _, wanted := r.targets[instr]; wanted {
		both, err := r.instructions()
		switch {
		case errors.Is(err, errNotMeasured):
			out = append(out, result{Name: r.name, Unit: instr, Exact: true, Target: r.targets[instr], Missing: err.Error()})
		case err != nil:
			return nil, err
		default:
			figures[instr] = both
		}
	}
	for _, u := range order {
		target, wanted := r.targets[u]
		both, measured := figures[u]
		if u == instr && !measured || !wanted {
			continue
		}
		if !measured {
			out = append(out, result{Name: r.name, Unit: u, Exact: u.exact(), Target: target, Missing: errNotMeasured.Error() + " on this system"})
			continue
		}
		ratio := both[0] / both[1]
		out = append(out, result{
			Name: r.name, Unit: u, Exact: u.exact(), Ours: both[0], Theirs: both[1],
			Ratio: ratio, Target: target, Hit: target > 0 && ratio <= target,
		})
	}
	return out, nil
}

// figures runs both sides in turns and takes the median of each.
func (r row) figures(rounds int) (map[unit][2]float64, error) {
	if r.fixed != nil {
		return r.fixed(rounds)
	}
	sides, end, err := r.sides()
	defer end()
	if err != nil {
		return nil, err
	}
	samples := map[unit]*[2][]float64{cpu: {}, allocs: {}, bytes: {}}
	for round := range rounds + 1 {
		for side, take := range sides {
			one, err := take()
			if err != nil {
				return nil, fmt.Errorf("side %d: %w", side, err)
			}
			if round == 0 {
				continue // a warm-up: pools fill, code pages load
			}
			for u, v := range one {
				samples[u][side] = append(samples[u][side], v)
			}
		}
	}
	out := map[unit][2]float64{}
	for u, both := range samples {
		out[u] = [2]float64{median(both[0]), median(both[1])}
	}
	return out, nil
}

// sides make both sides ready and return what takes a sample of each, and what ends them.
func (r row) sides() (take [2]func() (map[unit]float64, error), end func(), err error) {
	end = func() {}
	for side, prepare := range []func() (work, error){r.ours, r.theirs} {
		if r.alone {
			p, err := r.remote(side)
			if err != nil {
				return take, end, fmt.Errorf("side %d: %w", side, err)
			}
			others := end
			end = func() { others(); _ = p.end() }
			take[side] = p.sample
			continue
		}
		do, err := prepare()
		if err != nil {
			return take, end, fmt.Errorf("side %d: %w", side, err)
		}
		take[side] = func() (map[unit]float64, error) { return sample(do, r.n) }
	}
	return take, end, nil
}

// sample does the work once and returns its cost per operation.
func sample(do work, n int) (map[unit]float64, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuTime()
	if err := do(n); err != nil {
		return nil, err
	}
	spent := cpuTime() - start
	runtime.ReadMemStats(&after)
	per := float64(n)
	return map[unit]float64{
		cpu:    float64(spent) / float64(time.Microsecond) / per,
		allocs: float64(after.Mallocs-before.Mallocs) / per,
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / per,
	}, nil
}

func median[T cmp.Ordered](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
