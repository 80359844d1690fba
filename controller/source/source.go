// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/controller/reconcile"
)

// Source delivers events as requests.
type Source = TypedSource[reconcile.Request]

// TypedSource delivers events as keys of any comparable type.
type TypedSource[request comparable] interface {
	// Start begins to deliver into the queue, until the context ends. It must
	// not block: what takes time belongs into a goroutine. Only the controller
	// that was given the source calls it.
	Start(context.Context, workqueue.TypedRateLimitingInterface[request]) error
}

// SyncingSource is a Source whose first events can be waited for.
type SyncingSource = TypedSyncingSource[reconcile.Request]

// TypedSyncingSource is a TypedSource whose first events can be waited for.
type TypedSyncingSource[request comparable] interface {
	TypedSource[request]

	// WaitForSync blocks until everything that was there when the source was
	// started last is queued, or until the context ends; then it tells why
	// that took so long.
	WaitForSync(ctx context.Context) error
}

// Func is a Source that is a function.
type Func = TypedFunc[reconcile.Request]

// TypedFunc is a TypedSource that is a function. It must not block.
type TypedFunc[request comparable] func(context.Context, workqueue.TypedRateLimitingInterface[request]) error

var _ Source = Func(nil)

// Start calls the function.
func (f TypedFunc[request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	return f(ctx, queue)
}

func (f TypedFunc[request]) String() string { return fmt.Sprintf("func source: %p", f) }
