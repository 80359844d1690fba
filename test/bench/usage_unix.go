// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"runtime"
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

// peakMemory is the most memory that a process which has ended had resident, in MB.
func peakMemory(ended *os.ProcessState) float64 {
	use := ended.SysUsage().(*syscall.Rusage)
	if runtime.GOOS == "darwin" {
		return float64(use.Maxrss) / 1e6 // bytes there, KiB elsewhere
	}
	return float64(use.Maxrss) * 1024 / 1e6
}
