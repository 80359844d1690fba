// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Env names the environment variable that holds the path of a ready program.
// Where it is set nothing is looked for and nothing is built.
const Env = "WHERRY_APISERVER"

// BuildCommand is what to run ahead of tests where a build would not fit into
// their time.
const BuildCommand = "go run " + self + "/envtest/build"

// Find returns the path of the API server program: the one that Env names, or
// else the one in the user's cache folder, which it builds if there is none or
// its source has changed. The source is in the working tree this package is part
// of, or else module test/apiserver in this package's Version, which is
// downloaded. What is done is told to progress; it happens under a lock: of
// several processes that need a program, one builds and the others wait. A first
// build takes minutes; ctx stops it, or the wait for it. In a test whose time
// limit is too near Find fails at once. To find what is there takes milliseconds
// and needs no Go.
func Find(ctx context.Context, progress io.Writer) (string, error) {
	if path := os.Getenv(Env); path != "" {
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("%s=%s: %w; name an existing program, or unset it to have one built", Env, path, err)
		}
		if info.IsDir() {
			return "", fmt.Errorf("%s=%s is a folder; name the program itself", Env, path)
		}
		return path, nil
	}
	return here().find(ctx, progress)
}

// Build builds the program into the file target, which is made if there is none
// or its source has changed, under the lock that Find waits for too.
func Build(ctx context.Context, target string, progress io.Writer) error {
	return here().build(ctx, target, progress)
}

// find is Find for one source.
func (s source) find(ctx context.Context, progress io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder for the API server program: %w; set it, or name a program built elsewhere in %s", err, Env)
	}
	name := "apiserver"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	target := filepath.Join(cache, "wherry", s.name(), name)
	return target, s.build(ctx, target, progress)
}

// build makes target be there and up to date.
func (s source) build(ctx context.Context, target string, progress io.Writer) error {
	stamp, err := s.stamp()
	if err != nil || current(target, stamp) {
		return err
	}
	ctx, cancel, err := withinTest(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("the API server program must be built, and there is no go command: install Go, or name a program built elsewhere by %q in %s", BuildCommand, Env)
	}
	folder := filepath.Dir(target)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return unwritable(folder, err)
	}
	unlock, err := lock(ctx, target+".lock", progress)
	if err != nil {
		return err
	}
	defer unlock()
	if current(target, stamp) {
		return nil // another process has built it meanwhile
	}
	fmt.Fprintln(progress, "building the API server program; the first time this takes minutes")
	build, remove, err := s.fetch(ctx, folder)
	if err != nil {
		return err
	}
	defer remove()
	// A build that is cut off must leave no program that looks whole.
	fresh := target + ".new"
	if err := compile(ctx, build, fresh, progress); err != nil {
		return err
	}
	return finish(fresh, target, stamp)
}

// unwritable is the error for a folder that cannot be written to.
func unwritable(folder string, err error) error {
	return fmt.Errorf("keep the API server program in %s: %w; make that folder writable, choose another with %s, or name a program built elsewhere in %s", folder, err, cacheVariable(), Env)
}

// cacheVariable is what moves the user's cache folder.
func cacheVariable() string {
	switch runtime.GOOS {
	case "windows":
		return "LocalAppData"
	case "darwin":
		return "HOME"
	}
	return "XDG_CACHE_HOME"
}
