// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestOrderAgainstMap compares the order with the obvious thing, a map sorted on each look.
func TestOrderAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var o order
	model := map[string]*item{}
	for step := range 20_000 {
		key := fmt.Sprintf("n%d/o%04d", rnd.IntN(4), rnd.IntN(2_000))
		if rnd.IntN(3) > 0 {
			it := &item{key: key}
			o.insert(it)
			model[key] = it
		} else {
			_, want := model[key]
			if got := o.remove(key); got != want {
				t.Fatalf("step %d: remove(%s) = %v, want %v", step, key, got, want)
			}
			delete(model, key)
		}
		if step%500 != 0 {
			continue
		}
		checkOrder(t, &o, model, rnd)
	}
}

func checkOrder(t *testing.T, o *order, model map[string]*item, rnd *rand.Rand) {
	t.Helper()
	if o.len() != len(model) {
		t.Fatalf("len = %d, want %d", o.len(), len(model))
	}
	keys := slices.Sorted(maps.Keys(model))
	for _, prefix := range []string{"", "n0/", "n3/", "zz/", "n1/o00"} {
		for _, after := range []string{"", "n1/o1000", "n3/o0001x", keys[rnd.IntN(len(keys))]} {
			var want, got []string
			for _, k := range keys {
				if strings.HasPrefix(k, prefix) && k > after {
					want = append(want, k)
				}
			}
			for it := range o.from(prefix, after) {
				got = append(got, it.key)
				if model[it.key] != it {
					t.Fatalf("the item of %s is not the one put in", it.key)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("from(%q, %q): %d items, want %d", prefix, after, len(got), len(want))
			}
		}
	}
	for _, c := range o.chunks {
		if len(c) == 0 || len(c) > chunkSize {
			t.Fatalf("a chunk of %d items", len(c))
		}
	}
}

func TestOrderFill(t *testing.T) {
	for _, n := range []int{0, 1, chunkSize, chunkSize + 1, 5000} {
		var items []*item
		for i := range n {
			items = append(items, &item{key: fmt.Sprintf("%06d", i)})
		}
		var o order
		o.fill(items)
		if got := slices.Collect(o.from("", "")); !slices.Equal(got, items) {
			t.Fatalf("%d items: the walk differs", n)
		}
		o.insert(&item{key: "zzz"})
		if !o.has("zzz") || o.has("zz") {
			t.Fatal("has")
		}
	}
}
