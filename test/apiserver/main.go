// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command apiserver runs a real Kubernetes API server in one process, without etcd. See package program for what it
// takes and does, or run it with --help.
package main

import (
	"os"

	"github.com/wherry-dev/wherry/test/apiserver/program"
)

func main() { os.Exit(program.Main(os.Args[1:])) }
