// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime is the CPU time this process has used so far, all threads together.
func cpuTime() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic(err) // it cannot fail for RUSAGE_SELF
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
