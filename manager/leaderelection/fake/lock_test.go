// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"

	"github.com/wherry-dev/wherry/manager/leaderelection"
	"github.com/wherry-dev/wherry/manager/leaderelection/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var timing = leaderelection.Timing{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}

func TestBlockedElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock, err := fake.NewResourceLock(nil, nil, leaderelection.Options{})
		if err != nil {
			t.Fatal(err)
		}
		control := lock.(fake.ControllableResourceLockInterface)
		e, err := leaderelection.NewElector(lock, timing, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		control.BlockLeaderElection()
		limit, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := e.Campaign(limit); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("elected while blocked: %v", err)
		}
		control.UnblockLeaderElection()
		term, err := e.Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		control.BlockLeaderElection()
		began := time.Now()
		if err := e.Hold(t.Context(), term); !errors.Is(err, leaderelection.ErrLost) || time.Since(began) != timing.RenewDeadline {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		term.End()
		time.Sleep(time.Minute) // the timer that would cut writes under way
	})
}

// Candidates on one board contend for one record.
func ExampleBoard() {
	board := &fake.Board{}
	a, err := leaderelection.NewElector(board.Lock("a"), timing, logr.Discard())
	if err != nil {
		fmt.Println(err)
		return
	}
	term, err := a.Campaign(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer term.End()
	b, err := leaderelection.NewElector(board.Lock("b"), timing, logr.Discard())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = b.Campaign(ctx)
	now, _ := board.Record()
	fmt.Println(now.HolderIdentity, "leads; b:", err)
	// Output: a leads; b: context deadline exceeded
}
