// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

// delayed is a heap of waiting slots: earliest due first, first added first
// among equals. It is written out because container/heap boxes.
type delayed[T comparable] []*slot[T]

func (h delayed[T]) less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].seq < h[j].seq
}

func (h delayed[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

func (h *delayed[T]) push(s *slot[T]) {
	s.heapIndex = len(*h)
	*h = append(*h, s)
	h.up(s.heapIndex)
}

func (h *delayed[T]) remove(s *slot[T]) {
	i, last := s.heapIndex, len(*h)-1
	h.swap(i, last)
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		h.fix(i)
	}
}

func (h delayed[T]) fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h delayed[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h delayed[T]) down(i int) (moved bool) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return moved
		}
		if right := child + 1; right < len(h) && h.less(right, child) {
			child = right
		}
		if !h.less(child, i) {
			return moved
		}
		h.swap(i, child)
		i, moved = child, true
	}
}
