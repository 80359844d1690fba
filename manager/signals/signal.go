// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
)

var taken atomic.Bool

// SetupSignalHandler returns a context that is cancelled by the first SIGTERM or SIGINT (interrupt on Windows). The second
// ends the process at once with status 1, for whoever does not want to wait for a graceful stop. It can be called once per
// process: a second call panics, since two owners of the signals could not both be right.
func SetupSignalHandler() context.Context {
	if taken.Swap(true) {
		panic("signals: SetupSignalHandler called twice in one process")
	}
	// Room for both signals: the runtime drops one that finds no room.
	c := make(chan os.Signal, 2)
	signal.Notify(c, shutdownSignals...)
	return watch(c, os.Exit)
}

// watch owns c. Its goroutine lives as long as the process, by purpose: the second signal may come at any time.
func watch(c <-chan os.Signal, exit func(int)) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-c
		cancel()
		<-c
		exit(1)
	}()
	return ctx
}
