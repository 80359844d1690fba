// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
)

// kvInput is one call. Values are unique, so a state is told by its value; "" stands for "no such key".
type kvInput struct {
	kind   byte // 'g'et, 'w'rite or 'd'elete
	key    string
	expect string // what the caller believed to be there
	value  string
}

type kvOutput struct {
	unknown bool // nobody knows whether it happened
	applied bool
	value   string // what a get saw, or what a refused write met
}

var kvModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		byKey := make(map[string][]porcupine.Operation)
		for _, o := range all {
			key := o.Input.(kvInput).key
			byKey[key] = append(byKey[key], o)
		}
		var parts [][]porcupine.Operation
		for _, p := range byKey {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		have, in, out := state.(string), input.(kvInput), output.(kvOutput)
		next := in.value
		switch {
		case out.unknown:
			// It has until the end of time to happen, and what happens then nobody sees.
			if have != in.expect {
				return true, have
			}
			return true, next
		case in.kind == 'g':
			return out.value == have, have
		case out.applied:
			return have == in.expect, next
		}
		return have != in.expect && out.value == have, have
	},
}

// client makes random calls and writes down what it saw.
type client struct {
	id   int
	rng  *rand.Rand
	tick *atomic.Int64
	ops  []porcupine.Operation
	had  map[string]KV // what it believes of each key
}

func (c *client) run(s *Store, n int) {
	for i := range n {
		in := kvInput{kind: "gwwd"[c.rng.Intn(4)], key: fmt.Sprintf("/k/%d", c.rng.Intn(4))}
		if in.kind == 'w' {
			in.value = fmt.Sprintf("%d-%d-%d", c.id, i, c.tick.Load())
		}
		had := c.had[in.key]
		in.expect = string(had.Value)
		if in.kind == 'd' && had.ModRevision == 0 {
			in.kind = 'g'
		}
		call := c.tick.Add(1)
		out, happened := c.call(s, in, had.ModRevision)
		if !happened {
			continue
		}
		done := c.tick.Add(1)
		if out.unknown {
			done = math.MaxInt64
		}
		c.ops = append(c.ops, porcupine.Operation{ClientId: c.id, Input: in, Output: out, Call: call, Return: done})
	}
}

// call makes the call and tells whether it may have happened.
func (c *client) call(s *Store, in kvInput, expect int64) (kvOutput, bool) {
	if in.kind == 'g' {
		kv, _ := s.Get(in.key)
		return kvOutput{value: c.learn(in.key, kv)}, true
	}
	var value []byte
	if in.kind == 'w' {
		value = []byte(in.value)
	}
	r, err := s.Txn(context.Background(), Op{Key: in.key, Value: value, Expect: expect})
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		delete(c.had, in.key)
		return kvOutput{unknown: true}, true
	case errors.Is(err, ErrFailed):
		return kvOutput{}, false
	case err != nil:
		panic(err)
	case !r.Applied:
		return kvOutput{value: c.learn(in.key, r.Current)}, true
	case in.kind == 'w':
		c.had[in.key] = KV{Value: value, ModRevision: r.Revision}
	default:
		delete(c.had, in.key)
	}
	return kvOutput{applied: true}, true
}

func (c *client) learn(key string, kv *KV) string {
	if kv == nil {
		delete(c.had, key)
		return ""
	}
	c.had[key] = *kv
	return string(kv.Value)
}

// TestLinearizable checks histories of concurrent clients, some of which lose the disk in the middle and go on after
// a power cut.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	histories, calls := 20, 250
	if testing.Short() {
		histories = 4
	}
	for seed := range histories {
		rng := rand.New(rand.NewSource(int64(seed)))
		disk := newMemFS()
		s, err := Open(Options{Dir: "/d", FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		var tick atomic.Int64
		clients := make([]*client, 8)
		for i := range clients {
			clients[i] = &client{id: i, rng: rand.New(rand.NewSource(rng.Int63())), tick: &tick, had: make(map[string]KV)}
		}
		if seed%2 == 1 {
			at := 200 + rng.Intn(600)
			disk.fail = func(call int, what, _ string) (error, bool) {
				if call >= at && what == "sync" {
					return errDevice, false
				}
				return nil, false
			}
		}
		round := func() {
			var wg sync.WaitGroup
			for _, c := range clients {
				wg.Go(func() { c.run(s, calls) })
			}
			wg.Wait()
		}
		round()
		if s.Failure() != nil {
			s.Close()
			if s, err = Open(Options{Dir: "/d", FS: disk.powerCut(rng)}); err != nil {
				t.Fatal(err)
			}
			for _, c := range clients {
				clear(c.had)
			}
			round()
		}
		if err := s.Verify(); err != nil {
			t.Error(err)
		}
		s.Close()
		var all []porcupine.Operation
		for _, c := range clients {
			all = append(all, c.ops...)
		}
		result, _ := porcupine.CheckOperationsVerbose(kvModel, all, 5*patience)
		if result != porcupine.Ok {
			t.Errorf("history %d of %d calls: %v", seed, len(all), result)
		}
	}
}
