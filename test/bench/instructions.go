// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	stdbytes "bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
)

// errNotMeasured says that a figure is not measured here, and why.
var errNotMeasured = errors.New("not measured")

// child is what this program does when it runs itself under valgrind: prepare one side of one row, warm it up, do some
// operations, and end.
type child struct {
	side int // 0 is ours, 1 theirs
	ops  int
}

const (
	countSide = "count-side"
	countOps  = "count-ops"
	warmUp    = 20
)

// do is the whole life of a child, for the first row that pick matches.
func (c child) do(pick *regexp.Regexp) error {
	for _, r := range rows() {
		if !pick.MatchString(r.name) {
			continue
		}
		prepare := r.ours
		if c.side == 1 {
			prepare = r.theirs
		}
		do, err := prepare()
		if err != nil {
			return err
		}
		return do(warmUp + c.ops)
	}
	return fmt.Errorf("no row matches %q", pick)
}

var valgrind = sync.OnceValues(func() (string, error) {
	path, err := exec.LookPath("valgrind")
	if err != nil {
		return "", fmt.Errorf("%w: valgrind is not installed", errNotMeasured)
	}
	return path, nil
})

// countRounds is how often a program is counted. Now and then one does 20 million instructions beside its work, never
// less than its work: the fewest count.
const countRounds = 2

// instructions counts the instructions of one operation of each side: the difference between a run with operations and
// one without, by callgrind, with one thread and no garbage collection.
func (r row) instructions() (both [2]float64, err error) {
	for side := range both {
		none, err := r.fewest(child{side: side})
		if err != nil {
			return both, err
		}
		some, err := r.fewest(child{side: side, ops: r.counted})
		if err != nil {
			return both, err
		}
		both[side] = float64(some-none) / float64(r.counted)
	}
	return both, nil
}

// fewest is the lowest of some counts of what a child does.
func (r row) fewest(c child) (int64, error) {
	least := int64(math.MaxInt64)
	for range countRounds {
		n, err := r.callgrind(c)
		if err != nil {
			return 0, err
		}
		least = min(least, n)
	}
	return least, nil
}

var collected = regexp.MustCompile(`Collected : (\d+)`)

func (r row) callgrind(c child) (int64, error) {
	tool, err := valgrind()
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(tool, "--tool=callgrind", "--callgrind-out-file=/dev/null", self,
		"-only", "^"+regexp.QuoteMeta(r.name)+"$", "-"+countSide, strconv.Itoa(c.side), "-"+countOps, strconv.Itoa(c.ops))
	// The signal by which the runtime interrupts a goroutine would end callgrind.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	var out stdbytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("callgrind: %w: %s", err, out.String())
	}
	m := collected.FindSubmatch(out.Bytes())
	if m == nil {
		return 0, fmt.Errorf("callgrind did not say how many instructions it saw: %s", out.String())
	}
	return strconv.ParseInt(string(m[1]), 10, 64)
}
