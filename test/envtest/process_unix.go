// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package envtest

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// interrupt asks a program to end that knows no other way.
func (p *process) interrupt() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// stoppedBySignal reports whether a program ended by the signal of interrupt,
// which etcd does.
func stoppedBySignal(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

// explain has a program tell where each of its goroutines is, and waits for its
// end: programs in Go do so at SIGQUIT, and the embedded server tells its own last.
func (p *process) explain() {
	if p.cmd.Process.Signal(syscall.SIGQUIT) != nil {
		return // it has ended
	}
	select {
	case <-p.exited:
	case <-time.After(explainLimit):
	}
}
