// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"errors"
	"os/exec"
)

// interrupt ends a program: Windows has no gentler way for one without a
// console of its own.
func (p *process) interrupt() error { return p.cmd.Process.Kill() }

// stoppedBySignal reports whether a program ended by interrupt.
func stoppedBySignal(err error) bool {
	_, ok := errors.AsType[*exec.ExitError](err)
	return ok
}

// explain does nothing: there is no way to ask.
func (*process) explain() {}
