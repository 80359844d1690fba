// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue

import (
	"fmt"
	"testing"

	"k8s.io/client-go/util/workqueue"
)

// BenchmarkQueue takes distinct keys through the queue, client-go's beside it.
func BenchmarkQueue(b *testing.B) {
	const batch = 100_000
	keys := make([]string, batch)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace/name-%d", i)
	}
	for _, kind := range []struct {
		name string
		make func() workqueue.TypedRateLimitingInterface[string]
	}{
		{"wherry", func() workqueue.TypedRateLimitingInterface[string] { return New[string]("bench") }},
		{"client-go", func() workqueue.TypedRateLimitingInterface[string] {
			return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedItemBasedRateLimiter[string]())
		}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			b.ReportAllocs()
			q := kind.make()
			defer q.ShutDown()
			for n := 0; n < b.N; n += batch {
				some := keys[:min(batch, b.N-n)]
				for _, key := range some {
					q.Add(key)
				}
				for range some {
					key, _ := q.Get()
					q.Forget(key)
					q.Done(key)
				}
			}
		})
	}
}
