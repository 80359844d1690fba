// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command build builds the API server program ahead of the tests that need it
// and prints its path: for CI, where a first build would not fit into a test's
// time limit.
//
//	build [-o FILE]
//
// Without -o it goes to the user's cache folder, where test/envtest finds it;
// with -o set WHERRY_APISERVER to FILE.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/wherry-dev/wherry/test/envtest/program"
)

func main() {
	target := flag.String("o", "", "`FILE` to write the program to, instead of the user's cache folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	path, err := build(ctx, *target)
	if err != nil {
		fmt.Fprintln(os.Stderr, "build: "+err.Error())
		os.Exit(1)
	}
	fmt.Println(path)
}

func build(ctx context.Context, target string) (string, error) {
	if target == "" {
		return program.Find(ctx, os.Stderr)
	}
	target, err := filepath.Abs(target)
	if err != nil {
		return "", err
	}
	return target, program.Build(ctx, target, os.Stderr)
}
