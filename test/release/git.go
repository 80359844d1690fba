// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// git runs git in dir and returns what it says, without the last newline.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	return gitInput(ctx, dir, "", args...)
}

// gitInput is git with something to read.
func gitInput(ctx context.Context, dir, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
	// A machine on which git knows no user can test a release as well.
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=Wherry", "GIT_AUTHOR_EMAIL=release@wherry.invalid",
		"GIT_COMMITTER_NAME=Wherry", "GIT_COMMITTER_EMAIL=release@wherry.invalid")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("there is no git command: a release is made of what git tracks")
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// top is the folder of the repository around the current one.
func top(ctx context.Context) (string, error) { return git(ctx, ".", "rev-parse", "--show-toplevel") }
