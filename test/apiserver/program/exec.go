// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	exitCannotRun = 126
	exitNotFound  = 127
	exitSignal    = 128 // plus the signal's number
	// commandLimit is how long COMMAND is given to end once this program is to stop for another reason than a signal.
	commandLimit = 10 * time.Second
	// groupGrace is how long COMMAND is given to end by an interrupt that its whole process group may have got.
	groupGrace = 3 * time.Second
)

// execute runs COMMAND with KUBECONFIG set and returns its exit status. Signals are handed on to it, so it decides
// when to end. When the context ends, COMMAND is asked to end, and made to if it does not.
func execute(ctx context.Context, stop *stopper, args []string, kubeconfig string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUBECONFIG=") }),
		"KUBECONFIG="+kubeconfig)
	dieWithParent(cmd)
	// Before the start: a signal that comes between the two would stop this program and with it COMMAND.
	known := make(chan struct{})
	stop.redirect(func(sig os.Signal) {
		if <-known; cmd.Process != nil {
			handOn(cmd.Process, sig)
		}
	})
	defer stop.redirect(nil)
	started := make(chan error, 1)
	ended := make(chan error, 1)
	go func() {
		// The kernel ends the child with the *thread* that started it, so this one must stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	err := <-started
	close(known)
	if err != nil {
		status := exitCannotRun
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			status = exitNotFound
		}
		return complain(status, fmt.Errorf("cannot run the command %q: %w", args[0], err))
	}
	select {
	case err := <-ended:
		return status(err)
	case <-ctx.Done():
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		return status(err)
	case <-time.After(commandLimit):
		_ = cmd.Process.Kill()
		return status(<-ended)
	}
}

// handOn hands a signal on to COMMAND. An interrupt that may have reached COMMAND already, sent to the whole process group
// by a program instead of a terminal, is held back first: two of one often kill, and a COMMAND that got it has ended by
// then.
func handOn(command *os.Process, sig os.Signal) {
	send := func() { _ = command.Signal(sig) } // it may have ended by itself
	switch {
	case fromTerminal(sig):
	case sig == os.Interrupt:
		time.AfterFunc(groupGrace, send)
	default:
		send()
	}
}

// status turns how a command ended into an exit status.
func status(err error) int {
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return complain(exitError, fmt.Errorf("wait for the command: %w", err))
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return exitSignal + int(s.Signal())
	}
	return exit.ExitCode()
}
