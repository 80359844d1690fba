// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package program

import (
	"os"
	"syscall"
)

// forwarded are the signals this program takes, to act on or to hand to COMMAND.
var forwarded = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// fromTerminal is true for Ctrl-C: the console sends it to every process that is attached to it.
func fromTerminal(sig os.Signal) bool { return sig == os.Interrupt }
