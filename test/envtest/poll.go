// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"time"
)

// poll calls try until it succeeds or ctx ends. Then it returns the last error
// that is not just the end of ctx: that time was up the caller knows.
func poll(ctx context.Context, interval time.Duration, try func() error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last error
	for {
		err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() == nil:
			last = err
		case last == nil:
			return err
		default:
			return last
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last
		}
	}
}
