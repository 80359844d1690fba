// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/controller/reconcile"
)

// Queue is a TypedQueue of requests.
type Queue = TypedQueue[reconcile.Request]

// TypedQueue is a queue without rate limits and delays, so that a test sees at
// once what was added. TypedInterface must be set.
type TypedQueue[request comparable] struct {
	workqueue.TypedInterface[request]

	// AddedRateLimitedLock guards AddedRatelimited.
	AddedRateLimitedLock sync.Mutex

	// AddedRatelimited lists what AddRateLimited was called with. It is not in
	// the queue.
	AddedRatelimited []any
}

var _ workqueue.TypedRateLimitingInterface[reconcile.Request] = &Queue{}

// AddAfter adds the item at once.
func (q *TypedQueue[request]) AddAfter(item request, _ time.Duration) { q.Add(item) }

// AddRateLimited only takes note of the item.
func (q *TypedQueue[request]) AddRateLimited(item request) {
	q.AddedRateLimitedLock.Lock()
	defer q.AddedRateLimitedLock.Unlock()
	q.AddedRatelimited = append(q.AddedRatelimited, item)
}

// Forget does nothing.
func (q *TypedQueue[request]) Forget(request) {}

// NumRequeues is always 0.
func (q *TypedQueue[request]) NumRequeues(request) int { return 0 }
