// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"flag"
	"fmt"
	"time"
)

const (
	// longBuild is how long a first build may take on a small machine.
	longBuild = 8 * time.Minute
	// lastWords is how much of a test's time is kept to say that a build did not
	// fit into it.
	lastWords = 5 * time.Second
)

// started is about when this process began, which is what test.timeout counts
// from.
var started = time.Now()

// withinTest returns a context that ends just before the test's own time limit
// does. It fails if that is so near that a build would be cut off. Start is given
// no testing.T, so the flag has to tell.
func withinTest(ctx context.Context) (context.Context, context.CancelFunc, error) {
	limit := testTimeout()
	if limit == 0 {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	if left := limit - time.Since(started); left < longBuild {
		return nil, nil, fmt.Errorf("the API server program is to be built, which may take longer than the %v that are left of this test's %v: run %q first, or give the test more time with -timeout", left.Round(time.Second), limit, BuildCommand)
	}
	ctx, cancel := context.WithDeadlineCause(ctx, started.Add(limit-lastWords),
		fmt.Errorf("the test's time limit of %v was used up; run %q first", limit, BuildCommand))
	return ctx, cancel, nil
}

// testTimeout is the time limit of the test this process is, or zero.
func testTimeout() time.Duration {
	f := flag.Lookup("test.timeout")
	if f == nil {
		return 0
	}
	limit, _ := f.Value.(flag.Getter).Get().(time.Duration)
	return limit
}
