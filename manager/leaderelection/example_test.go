// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/wherry-dev/wherry/manager/leaderelection"
	"github.com/wherry-dev/wherry/manager/leaderelection/fake"
)

// A candidate campaigns, leads for a moment and gives the lease up. A manager does this for its runnables.
func ExampleElector() {
	board := &fake.Board{} // in an operator: the lock of NewResourceLock
	elector, err := leaderelection.NewElector(board.Lock("me"), leaderelection.Timing{
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}, logr.Discard())
	if err != nil {
		fmt.Println(err)
		return
	}
	term, err := elector.Campaign(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	now, _ := board.Record()
	fmt.Printf("%s leads\n", now.HolderIdentity)

	ctx, stop := context.WithTimeout(context.Background(), time.Millisecond)
	defer stop()
	fmt.Println("held until the stop:", elector.Hold(ctx, term) == nil)

	fmt.Println("writes under way:", term.End())
	fmt.Println("released:", elector.Release(context.Background()) == nil)
	_, _, err = term.Begin(context.Background())
	fmt.Println("a late write:", err)
	// Output:
	// me leads
	// held until the stop: true
	// writes under way: 0
	// released: true
	// a late write: term of leadership is over: stepped down
}
