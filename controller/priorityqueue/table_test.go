// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"hash/maphash"
	"math/rand/v2"
	"testing"
)

// TestTable runs random operations on a table and on a map, with hashes as
// they are and with hashes that collide all the time.
func TestTable(t *testing.T) {
	for name, keep := range map[string]uint64{"hashes": ^uint64(0), "low bits": 7, "high bits": 7 << 60, "one hash": 0} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, keep))
			table, want := newTable[int](maphash.MakeSeed()), map[int]*slot[int]{}
			hash := func(key int) uint64 { return table.hash(key) & keep }
			for step := range 20_000 {
				key := r.IntN(500)
				s := table.find(hash(key), key)
				if s != want[key] {
					t.Fatalf("step %d: find(%d) is %p, want %p", step, key, s, want[key])
				}
				// Waves of growth and of emptying.
				switch grows := step/2000%2 == 0; {
				case s == nil && (grows || r.IntN(4) == 0):
					want[key] = &slot[int]{key: key, hash: hash(key)}
					table.insert(want[key])
				case s != nil && (!grows || r.IntN(4) == 0):
					table.remove(s)
					delete(want, key)
				}
				if table.n != len(want) {
					t.Fatalf("step %d: %d slots, want %d", step, table.n, len(want))
				}
			}
			all := 0
			table.all(func(s *slot[int]) {
				all++
				if want[s.key] != s {
					t.Errorf("%d is in the table and should not be", s.key)
				}
			})
			if all != len(want) {
				t.Errorf("the table lists %d slots, want %d", all, len(want))
			}
		})
	}
}

// TestTableSpreads wants chains to stay short while the table grows.
func TestTableSpreads(t *testing.T) {
	table := newTable[int](maphash.MakeSeed())
	for key := range 10_000 {
		table.insert(&slot[int]{key: key, hash: table.hash(key)})
		if len(table.chains) < 2*table.n {
			t.Fatalf("%d slots in %d chains", table.n, len(table.chains))
		}
	}
	longest := 0
	for _, s := range table.chains {
		n := 0
		for ; s != nil; s = s.chain {
			n++
		}
		longest = max(longest, n)
	}
	if longest > 16 {
		t.Errorf("the longest chain has %d slots", longest)
	}
}
