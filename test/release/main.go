// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command release makes the modules of this repository ready for others.
//
//	release tag VERSION          tag every module at VERSION, on a commit beside the current branch
//	release proxy VERSION DIR    write every module at VERSION into DIR, laid out as a module proxy
//
// In the repository each module finds the others by path, so that a change to
// two of them is one commit. Outside that means nothing: what is released is
// staged first, with every requirement of a module of ours at VERSION, without
// path replacements, and with the checksums a stranger's go command will ask
// for. Both commands release the same stage, and the test in this folder uses
// it as a stranger would.
//
// Nothing is pushed: tag prints the command that does.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
)

const usage = `usage: release tag VERSION
       release proxy VERSION DIR
VERSION is a semantic version such as v0.1.0; run it inside the repository.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	repo, err := top(ctx)
	if err != nil {
		return err
	}
	switch {
	case len(args) == 2 && args[0] == "tag":
		return tag(ctx, repo, args[1])
	case len(args) == 3 && args[0] == "proxy":
		return publish(ctx, repo, args[1], args[2])
	}
	return errors.New("unknown command\n" + usage)
}
