// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package program

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// forwarded are the signals this program takes, to act on or to hand to COMMAND.
var forwarded = []os.Signal{
	os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// fromTerminal reports whether COMMAND got a signal already: a terminal sends these to all its foreground processes,
// and COMMAND is one if this program is. Handing it on would make two of one Ctrl-C, and the second often kills.
func fromTerminal(sig os.Signal) bool {
	if sig != os.Interrupt && sig != syscall.SIGQUIT && sig != syscall.SIGWINCH {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	foreground, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && foreground == unix.Getpgrp()
}
