// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// oddDelay replaces what a rate limiter answers when that is no delay.
const oddDelay = time.Second

// Limiter is a rate limiter that does no harm when the one it is made Of
// panics or answers a negative delay: the delay is a second then. Faults go to
// Keeper. It is as safe for concurrent use as Of is.
type Limiter[T comparable] struct {
	Of     workqueue.TypedRateLimiter[T]
	Keeper *Keeper
}

// When implements workqueue.TypedRateLimiter.
func (l Limiter[T]) When(item T) (d time.Duration) {
	d = oddDelay // if it panics
	defer l.contain(item)
	answer := l.Of.When(item)
	if answer < 0 {
		l.Keeper.Note(RateLimiter, item, fmt.Errorf("rate limiter answered the negative delay %s", answer))
		return oddDelay
	}
	return answer
}

// Forget implements workqueue.TypedRateLimiter.
func (l Limiter[T]) Forget(item T) {
	defer l.contain(item)
	l.Of.Forget(item)
}

// NumRequeues implements workqueue.TypedRateLimiter. It is 0 if Of panics.
func (l Limiter[T]) NumRequeues(item T) int {
	defer l.contain(item)
	return l.Of.NumRequeues(item)
}

// contain is deferred.
func (l Limiter[T]) contain(item T) {
	if r := recover(); r != nil {
		l.Keeper.Note(RateLimiter, item, fmt.Errorf("rate limiter panicked: %v", r))
	}
}
