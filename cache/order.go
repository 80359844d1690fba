// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"iter"
	"slices"
	"sort"
	"strings"
)

// chunkSize bounds how many items one chunk of an order holds. An insertion moves at most this many
// pointers (4 KiB), whatever the size of the whole.
const chunkSize = 512

// item is one stored object under its key. The object is replaced in place, under the store's lock, so
// that orders and postings need no work when an object changes without changing its place.
type item struct {
	key string
	obj any
}

// order is a set of items sorted by key, as the API server sorts a list. It is a list of sorted chunks:
// insertion and removal cost a binary search and one short move, a walk costs nothing but itself.
// The zero value is an empty order. Callers lock.
type order struct {
	chunks [][]*item
	n      int
}

// len returns the number of items.
func (o *order) len() int { return o.n }

// find returns the chunk and the place in it where key is or belongs.
func (o *order) find(key string) (chunk, place int, found bool) {
	chunk = sort.Search(len(o.chunks), func(i int) bool {
		c := o.chunks[i]
		return c[len(c)-1].key >= key
	})
	if chunk == len(o.chunks) {
		if chunk == 0 {
			return 0, 0, false
		}
		chunk--
		return chunk, len(o.chunks[chunk]), false
	}
	place, found = slices.BinarySearchFunc(o.chunks[chunk], key, func(it *item, key string) int {
		return strings.Compare(it.key, key)
	})
	return chunk, place, found
}

// has reports whether an item with this key is in the set.
func (o *order) has(key string) bool {
	_, _, found := o.find(key)
	return found
}

// insert puts it in its place. An item with the same key is replaced.
func (o *order) insert(it *item) {
	if len(o.chunks) == 0 {
		o.chunks = append(o.chunks, []*item{it})
		o.n = 1
		return
	}
	c, p, found := o.find(it.key)
	if found {
		o.chunks[c][p] = it
		return
	}
	o.n++
	o.chunks[c] = slices.Insert(o.chunks[c], p, it)
	if len(o.chunks[c]) <= chunkSize {
		return
	}
	// Keys often arrive in rising order, so a split at the end leaves the left chunk full.
	cut := chunkSize / 2
	if p == len(o.chunks[c])-1 {
		cut = chunkSize
	}
	right := slices.Clone(o.chunks[c][cut:])
	clear(o.chunks[c][cut:])
	o.chunks[c] = o.chunks[c][:cut]
	o.chunks = slices.Insert(o.chunks, c+1, right)
}

// remove takes the item with this key out and reports whether there was one.
func (o *order) remove(key string) bool {
	c, p, found := o.find(key)
	if !found {
		return false
	}
	o.n--
	o.chunks[c] = slices.Delete(o.chunks[c], p, p+1)
	if len(o.chunks[c]) == 0 {
		o.chunks = slices.Delete(o.chunks, c, c+1)
	}
	return true
}

// fill makes the order hold exactly items, which must be sorted and free of duplicates. It keeps no
// reference to the slice.
func (o *order) fill(items []*item) {
	o.chunks, o.n = nil, len(items)
	for part := range slices.Chunk(items, chunkSize) {
		o.chunks = append(o.chunks, slices.Clone(part))
	}
}

// count returns how many items from walks.
func (o *order) count(prefix string) int {
	if prefix == "" {
		return o.n
	}
	n := 0
	for range o.from(prefix, "") {
		n++
	}
	return n
}

// from walks, in order, the items whose key starts with prefix and is greater than after.
func (o *order) from(prefix, after string) iter.Seq[*item] {
	return func(yield func(*item) bool) {
		if o.n == 0 {
			return
		}
		start := max(prefix, after)
		c, p, found := o.find(start)
		if found && start == after && after != "" {
			p++
		}
		for ; c < len(o.chunks); c, p = c+1, 0 {
			for _, it := range o.chunks[c][min(p, len(o.chunks[c])):] {
				if !strings.HasPrefix(it.key, prefix) || !yield(it) {
					return
				}
			}
		}
	}
}
