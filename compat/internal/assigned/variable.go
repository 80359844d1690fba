// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package assigned

import "sync"

var (
	mu     sync.Mutex
	shared []func()
)

// Share makes HandOver copy what was assigned to *here since to *behind. Both
// hold the same value when it is called.
func Share[T comparable](here, behind *T) {
	mu.Lock()
	defer mu.Unlock()
	last := *here
	shared = append(shared, func() {
		if *here != last {
			last = *here
			*behind = last
		}
	})
}

// HandOver hands on all assignments made since it was called last. What reads
// such a variable behind calls it first. It writes nothing if nothing was
// assigned, so a program has no data race that it would not have anyway.
func HandOver() {
	mu.Lock()
	defer mu.Unlock()
	for _, hand := range shared {
		hand()
	}
}
