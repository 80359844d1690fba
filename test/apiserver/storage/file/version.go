// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

// version is one state of one key. Nothing in it changes once it is published, save the decoded objects it collects.
type version struct {
	key     string
	value   []byte
	created int64 // revision of the write that made the key
	mod     int64 // revision of the write that made this version
	expires int64 // Unix nanoseconds, 0 for never
	objects cell
}

// event is one write: exactly one per revision.
type event struct {
	rev  int64
	key  string
	time int64    // Unix nanoseconds when the write was made
	cur  *version // nil after a delete
	prev *version // nil before a create
	gone cell     // prev's objects with this event's revision: what a watcher hears when the object leaves its sight
}

func (e *event) kind() eventKind {
	switch {
	case e.cur == nil:
		return deleted
	case e.prev == nil:
		return created
	}
	return modified
}

type eventKind uint8

const (
	created eventKind = iota + 1
	modified
	deleted
)

// cost is what remembering the event costs in memory beyond what the index holds anyway.
func (e *event) cost() int64 {
	const fixed = 256
	if e.prev == nil {
		return fixed
	}
	return fixed + int64(len(e.prev.value))
}
