// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package program

import "os/exec"

// NB: only Linux can do this. Elsewhere a command outlives this program if it is killed with SIGKILL.
func dieWithParent(*exec.Cmd) {}
