// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	// parentPeriod is how often the program looks whether the one that started it is still there.
	parentPeriod = time.Second
	// exitInterrupted is the status after a second signal.
	exitInterrupted = 130
)

var (
	errSignal = errors.New("a signal asked for the end")
	errParent = errors.New("the program that started this one has ended")
	errStdin  = errors.New("standard input has ended")
)

// stopper ends a context when the program is told to stop, in whatever way the command line allows.
type stopper struct {
	cancel  context.CancelCauseFunc
	signals chan os.Signal

	mu   sync.Mutex // guards take
	take func(os.Signal)
}

// newStopper begins to listen.
func newStopper(c *commandLine) (context.Context, *stopper) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &stopper{cancel: cancel, signals: make(chan os.Signal, 16)}
	s.take = s.end
	signal.Notify(s.signals, forwarded...)
	go func() {
		for sig := range s.signals {
			s.mu.Lock()
			take := s.take
			s.mu.Unlock()
			take(sig)
		}
	}()
	if !c.detach {
		go watchParent(ctx, cancel)
	}
	if c.stdinEOF {
		go func() {
			// NB: this read outlives the context; it ends with the process, which is what it is for.
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel(errStdin)
		}()
	}
	return ctx, s
}

// end is what a signal does unless COMMAND is there to have it: the first stops the program, the second ends it.
func (s *stopper) end(sig os.Signal) {
	if sig != os.Interrupt && sig != syscall.SIGTERM && sig != syscall.SIGHUP {
		return
	}
	s.cancel(errSignal)
	s.redirect(func(sig os.Signal) {
		if sig == os.Interrupt || sig == syscall.SIGTERM || sig == syscall.SIGHUP {
			os.Exit(exitInterrupted)
		}
	})
}

// redirect gives all further signals to take; nil gives them back to end.
func (s *stopper) redirect(take func(os.Signal)) {
	if take == nil {
		take = s.end
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take = take
}

// release ends the context and what waits on it.
func (s *stopper) release() {
	signal.Stop(s.signals)
	close(s.signals)
	s.cancel(nil)
}

// watchParent ends the context when this process gets another parent: the old one is dead then.
func watchParent(ctx context.Context, cancel context.CancelCauseFunc) {
	parent := os.Getppid()
	if parent <= 1 {
		return // started by init, or by a parent that is dead already and wanted it so
	}
	tick := time.NewTicker(parentPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if os.Getppid() != parent {
				cancel(errParent)
				return
			}
		}
	}
}
