// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// parentPeriod is how often the program looks whether the one that started it is still there.
	parentPeriod = time.Second
	// exitInterrupted is the status after a second signal.
	exitInterrupted = 130
	// thisModule is how the names of this module's functions begin.
	thisModule = "github.com/wherry-dev/wherry/test/apiserver"
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

// end is what a signal does unless COMMAND is there to have it: the first stops the program, the second ends it, and
// SIGQUIT ends it at once with word of where it was.
func (s *stopper) end(sig os.Signal) {
	switch {
	case sig == syscall.SIGQUIT:
		quit()
	case stops(sig):
		s.cancel(errSignal)
		s.redirect(func(sig os.Signal) {
			switch {
			case sig == syscall.SIGQUIT:
				quit()
			case stops(sig):
				os.Exit(exitInterrupted)
			}
		})
	}
}

func stops(sig os.Signal) bool {
	return sig == os.Interrupt || sig == syscall.SIGTERM || sig == syscall.SIGHUP
}

// quit ends the program and tells where each of its goroutines was, as Go's own programs do at SIGQUIT.
func quit() {
	fmt.Fprint(os.Stderr, whereabouts())
	os.Exit(exitSignal + int(syscall.SIGQUIT))
}

// whereabouts tells where the goroutines are, a line for those alike: how many, and the functions, innermost first. There
// are hundreds; those in this module's code come last, for a test keeps the end of what its server says.
func whereabouts() string {
	var profile bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1) // a buffer takes everything
	var others, ours strings.Builder
	for group := range strings.SplitSeq(profile.String(), "\n\n") {
		to := &others
		if strings.Contains(group, thisModule) {
			to = &ours
		}
		for line := range strings.Lines(group) {
			words := strings.Fields(line) // a count and addresses, or "#", address, function+offset and file:line
			switch {
			case len(words) > 3 && words[0] == "#":
				function, _, _ := strings.Cut(path.Base(words[2]), "+")
				_, number, _ := strings.Cut(path.Base(words[3]), ":")
				fmt.Fprintf(to, " < %s:%s", function, number)
			case len(words) > 1 && words[1] == "@":
				fmt.Fprintf(to, "\n%s goroutines", words[0])
			}
		}
	}
	return others.String() + ours.String() + "\n"
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
