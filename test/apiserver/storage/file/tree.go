// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"sort"
	"strings"
	"sync/atomic"
)

// maxItems is a tree node's capacity. Half of it is the least a node other than the root holds.
const maxItems = 64

// owner marks the nodes a tree may change in place. A node with another owner is shared and copied first.
type owner struct{ _ byte }

// size is what a node sums up over its subtree.
type size struct {
	count int
	bytes int64
}

func (a size) plus(b size) size  { return size{a.count + b.count, a.bytes + b.bytes} }
func (a size) minus(b size) size { return size{a.count - b.count, a.bytes - b.bytes} }

func sizeOf(v *version) size { return size{1, int64(len(v.value))} }

type node struct {
	owner *owner
	size  size
	items []*version
	kids  []*node // empty in a leaf, else one more than items
}

// tree is a B-tree of versions ordered by key. One goroutine at a time may change it; any number may read it while
// nobody changes it, and a root taken with share stays as it was for ever.
type tree struct {
	root  *node
	owner atomic.Pointer[owner]
}

// share gives the present state. Later changes copy what they touch. Readers may call it side by side.
func (t *tree) share() *node {
	t.owner.Store(new(owner))
	return t.root
}

func (t *tree) writable(n *node) *node {
	o := t.owner.Load()
	if n.owner == o {
		return n
	}
	c := &node{owner: o, size: n.size, items: make([]*version, len(n.items), maxItems+1)}
	copy(c.items, n.items)
	if len(n.kids) > 0 {
		c.kids = make([]*node, len(n.kids), maxItems+2)
		copy(c.kids, n.kids)
	}
	return c
}

// search gives the place of key in n's items and whether it is there.
func (n *node) search(key string) (int, bool) {
	i := sort.Search(len(n.items), func(i int) bool { return n.items[i].key >= key })
	return i, i < len(n.items) && n.items[i].key == key
}

// get gives the version stored under key, or nil.
func (n *node) get(key string) *version {
	for n != nil {
		i, found := n.search(key)
		if found {
			return n.items[i]
		}
		if len(n.kids) == 0 {
			return nil
		}
		n = n.kids[i]
	}
	return nil
}

// ascend calls yield for each version with a key of at least from, in order, until yield says no.
func (n *node) ascend(from string, yield func(*version) bool) bool {
	if n == nil {
		return true
	}
	i, found := n.search(from)
	if !found && len(n.kids) > 0 && !n.kids[i].ascend(from, yield) {
		return false
	}
	for ; i < len(n.items); i++ {
		if !yield(n.items[i]) {
			return false
		}
		if len(n.kids) > 0 && !n.kids[i+1].ascend("", yield) {
			return false
		}
	}
	return true
}

// ascendPrefix is ascend from max(prefix, from), stopping where the prefix ends.
func (n *node) ascendPrefix(prefix, from string, yield func(*version) bool) {
	n.ascend(max(prefix, from), func(v *version) bool {
		return strings.HasPrefix(v.key, prefix) && yield(v)
	})
}

// before sums up the versions with a key less than key.
func (n *node) before(key string) size {
	var sum size
	for n != nil {
		i, found := n.search(key)
		for _, v := range n.items[:i] {
			sum = sum.plus(sizeOf(v))
		}
		if len(n.kids) == 0 {
			return sum
		}
		for _, kid := range n.kids[:i] {
			sum = sum.plus(kid.size)
		}
		if found {
			return sum.plus(n.kids[i].size)
		}
		n = n.kids[i]
	}
	return sum
}

// within sums up the versions from the key from to the end of prefix.
func (n *node) within(prefix, from string) size {
	if n == nil {
		return size{}
	}
	total := n.size
	if end := prefixEnd(prefix); end != "" {
		total = n.before(end)
	}
	return total.minus(n.before(max(prefix, from)))
}

// prefixEnd gives the least key that is greater than every key with the prefix, or "" if there is none.
func prefixEnd(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string(prefix[i]+1)
		}
	}
	return ""
}

// set stores v under its key and gives what was there.
func (t *tree) set(v *version) *version {
	if t.root == nil {
		t.root = &node{owner: t.owner.Load()}
	}
	t.root = t.writable(t.root)
	old := t.insert(t.root, v)
	if len(t.root.items) > maxItems {
		left := t.root
		mid, right := t.split(left)
		t.root = &node{owner: left.owner, items: []*version{mid}, kids: []*node{left, right}}
		t.root.resum()
	}
	return old
}

// insert works on a node the tree may change and may leave it one item too big.
func (t *tree) insert(n *node, v *version) *version {
	i, found := n.search(v.key)
	if found {
		old := n.items[i]
		n.items[i] = v
		n.size = n.size.minus(sizeOf(old)).plus(sizeOf(v))
		return old
	}
	if len(n.kids) == 0 {
		n.items = insertAt(n.items, i, v)
		n.size = n.size.plus(sizeOf(v))
		return nil
	}
	kid := t.writable(n.kids[i])
	n.kids[i] = kid
	was := kid.size
	old := t.insert(kid, v)
	n.size = n.size.minus(was).plus(kid.size)
	if len(kid.items) > maxItems {
		mid, right := t.split(kid)
		n.items = insertAt(n.items, i, mid)
		n.kids = insertAt(n.kids, i+1, right)
	}
	return old
}

// split cuts n, which the tree may change, in two and gives the item between them and the right half.
func (t *tree) split(n *node) (*version, *node) {
	at := len(n.items) / 2
	mid := n.items[at]
	right := &node{owner: n.owner, items: append(make([]*version, 0, maxItems+1), n.items[at+1:]...)}
	clear(n.items[at:])
	n.items = n.items[:at]
	if len(n.kids) > 0 {
		right.kids = append(make([]*node, 0, maxItems+2), n.kids[at+1:]...)
		clear(n.kids[at+1:])
		n.kids = n.kids[:at+1]
	}
	n.resum()
	right.resum()
	return mid, right
}

func (n *node) resum() {
	n.size = size{}
	for _, v := range n.items {
		n.size = n.size.plus(sizeOf(v))
	}
	for _, kid := range n.kids {
		n.size = n.size.plus(kid.size)
	}
}

// delete removes key and gives what was there.
func (t *tree) delete(key string) *version {
	if t.root.get(key) == nil {
		return nil
	}
	t.root = t.writable(t.root)
	old := t.remove(t.root, key)
	if len(t.root.items) == 0 {
		if len(t.root.kids) > 0 {
			t.root = t.root.kids[0]
		} else {
			t.root = nil
		}
	}
	return old
}

// remove takes key, which is there, out of n's subtree. It works on a node the tree may change and may leave it one
// item too small.
func (t *tree) remove(n *node, key string) *version {
	i, found := n.search(key)
	if len(n.kids) == 0 {
		old := n.items[i]
		n.items = removeAt(n.items, i)
		n.size = n.size.minus(sizeOf(old))
		return old
	}
	kid := t.writable(n.kids[i])
	n.kids[i] = kid
	was := kid.size
	var old *version
	if found {
		// The item's place is taken by its predecessor, the last item of the subtree on its left.
		last := kid.last()
		t.remove(kid, last.key)
		old = n.items[i]
		n.items[i] = last
		n.size = n.size.minus(sizeOf(old)).plus(sizeOf(last))
	} else {
		old = t.remove(kid, key)
	}
	n.size = n.size.minus(was).plus(kid.size)
	if len(kid.items) < maxItems/2 {
		t.refill(n, i)
	}
	return old
}

func (n *node) last() *version {
	for len(n.kids) > 0 {
		n = n.kids[len(n.kids)-1]
	}
	return n.items[len(n.items)-1]
}

// refill brings n's kid i, which is one item too small, back to size: it takes an item from a neighbour that can
// spare one, or joins it with a neighbour.
func (t *tree) refill(n *node, i int) {
	kid := n.kids[i]
	if i > 0 && len(n.kids[i-1].items) > maxItems/2 {
		left := t.writable(n.kids[i-1])
		n.kids[i-1] = left
		kid.items = insertAt(kid.items, 0, n.items[i-1])
		n.items[i-1] = left.items[len(left.items)-1]
		left.items = removeAt(left.items, len(left.items)-1)
		if len(left.kids) > 0 {
			kid.kids = insertAt(kid.kids, 0, left.kids[len(left.kids)-1])
			left.kids = removeAt(left.kids, len(left.kids)-1)
		}
		left.resum()
		kid.resum()
		return
	}
	if i < len(n.items) && len(n.kids[i+1].items) > maxItems/2 {
		right := t.writable(n.kids[i+1])
		n.kids[i+1] = right
		kid.items = append(kid.items, n.items[i])
		n.items[i] = right.items[0]
		right.items = removeAt(right.items, 0)
		if len(right.kids) > 0 {
			kid.kids = append(kid.kids, right.kids[0])
			right.kids = removeAt(right.kids, 0)
		}
		right.resum()
		kid.resum()
		return
	}
	if i == len(n.items) {
		i--
	}
	left := t.writable(n.kids[i])
	n.kids[i] = left
	right := n.kids[i+1]
	left.items = append(append(left.items, n.items[i]), right.items...)
	left.kids = append(left.kids, right.kids...)
	left.size = left.size.plus(sizeOf(n.items[i])).plus(right.size)
	n.items = removeAt(n.items, i)
	n.kids = removeAt(n.kids, i+1)
}

func insertAt[T any](s []T, i int, v T) []T {
	var zero T
	s = append(s, zero)
	copy(s[i+1:], s[i:])
	s[i] = v
	return s
}

func removeAt[T any](s []T, i int) []T {
	copy(s[i:], s[i+1:])
	clear(s[len(s)-1:])
	return s[:len(s)-1]
}
