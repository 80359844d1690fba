// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"testing"

	"go.uber.org/goleak"
)

// The handler's goroutine lives as long as the process, by purpose.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/wherry-dev/wherry/manager/signals.watch.func1"),
		goleak.IgnoreTopFunction("os/signal.loop"))
}
