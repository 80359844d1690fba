// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package priorityqueue_test

import (
	"fmt"
	"time"

	"github.com/wherry-dev/wherry/controller/priorityqueue"
)

func ExampleNew() {
	q := priorityqueue.New[string]("example")
	defer q.ShutDown()

	urgent := 10
	q.Add("first")
	q.Add("second")
	q.Add("first") // queued already
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &urgent}, "urgent")
	q.AddWithOpts(priorityqueue.AddOpts{After: time.Hour}, "in an hour")

	for range q.Len() {
		key, priority, _ := q.GetWithPriority()
		fmt.Println(key, priority)
		q.Done(key)
	}
	// Output:
	// urgent 10
	// first 0
	// second 0
}
