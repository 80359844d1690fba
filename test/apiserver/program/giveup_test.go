// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/wherry-dev/wherry/test/apiserver/controllers"
	"github.com/wherry-dev/wherry/test/apiserver/server"
	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

// TestControllersOfADeadServer starts every controller against a server that is not there any more, as Start does when
// it is told to stop in its last moments. Kubernetes' namespace deleter ends the process then.
func TestControllersOfADeadServer(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err, l.Close())
	for _, name := range controllers.Names() {
		t.Run(name, func(t *testing.T) {
			set, err := controllers.Start(t.Context(), &rest.Config{Host: "http://" + l.Addr().String()}, name)
			set.Stop()
			if name == controllers.Namespaces && (err == nil || !strings.Contains(err.Error(), "namespaces")) {
				t.Errorf("%v; want an error that names the controller", err)
			}
		})
	}
}

// TestControllersOfADeafServer cuts short the start of controllers whose server takes connections and says nothing.
func TestControllersOfADeafServer(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(200*time.Millisecond, func() { cancel(why) })
	begun := time.Now()
	set, err := controllers.Start(ctx, &rest.Config{Host: "http://" + l.Addr().String()}, controllers.Names()...)
	set.Stop()
	if !errors.Is(err, why) {
		t.Errorf("%v; want the context's cause", err)
	}
	if took := time.Since(begun); took > stopLimit {
		t.Errorf("it took %v to give up", took)
	}
}

// quitter is a log that ends the process, as Kubernetes' code does where it gives up, at a line with a text.
type quitter struct{ at string }

func (quitter) Init(logr.RuntimeInfo)            {}
func (quitter) Enabled(level int) bool           { return level == 0 }
func (quitter) Error(error, string, ...any)      {}
func (q quitter) WithValues(...any) logr.LogSink { return q }
func (q quitter) WithName(string) logr.LogSink   { return q }
func (q quitter) Info(_ int, line string, _ ...any) {
	if strings.Contains(line, q.at) {
		klog.OsExit(1)
	}
}

// TestGivingUpIsAnError has Kubernetes' code give up on the process while the server is put together: Start must fail,
// and neither end the process nor the goroutine it was called on, which would be the program's first.
func TestGivingUpIsAnError(t *testing.T) {
	serve(t).Stop() // from here on klog's exit is the server's
	klog.SetLogger(logr.New(quitter{"Adding GroupVersion"}))
	t.Cleanup(server.Quiet)
	var err error
	returned, ended := false, make(chan struct{})
	go func() {
		defer close(ended)
		_, err = server.Start(t.Context(), server.Options{Storage: file.Memory})
		returned = true
	}()
	<-ended
	if !returned {
		t.Fatal("Start ended the goroutine it was called on")
	}
	if err == nil || !strings.Contains(err.Error(), "gave up") {
		t.Errorf("%v; want an error that says that kube-apiserver gave up", err)
	}
}

// never is a flag with which a server never becomes ready: a part of it waits for objects of a kind that is not served.
const never = "runtime-config=node.k8s.io/v1=false"

// patiently gives check 3 seconds, and twice as long each time it fails: how far a start comes in a time is the machine's.
func patiently(t *testing.T, check func(limit time.Duration) string) {
	t.Helper()
	for limit := 3 * time.Second; ; limit *= 2 {
		why := check(limit)
		if why == "" {
			return
		}
		if limit > startLimit {
			t.Fatal(why)
		}
	}
}

// TestStartSaysWhatItWaitsFor ends the start of a server that never becomes ready.
func TestStartSaysWhatItWaitsFor(t *testing.T) {
	patiently(t, func(limit time.Duration) string {
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), limit, why)
		defer cancel()
		s, err := server.Start(ctx, server.Options{Storage: file.Memory, Flags: []string{never}})
		if err == nil {
			t.Fatal("it is ready", s.Stop())
		}
		if !errors.Is(err, why) || !strings.Contains(err.Error(), "informer-sync") {
			return err.Error() + "; want the context's cause and the check that fails"
		}
		return ""
	})
}

// TestProgramSaysWhatItWaitsFor does so with a program, which was told to stop and did: that is a success.
func TestProgramSaysWhatItWaitsFor(t *testing.T) {
	patiently(t, func(limit time.Duration) string {
		cmd := command(t, "--storage", "memory", "--exit-on-stdin-eof", "--apiserver-flag", never)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdin, err := cmd.StdinPipe()
		must(t, err, cmd.Start())
		time.AfterFunc(limit, func() { _ = stdin.Close() })
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v; want status 0", err)
		}
		line := stderr.String()
		if !strings.Contains(line, "standard input has ended") || strings.Count(line, "\n") != 1 {
			t.Errorf("it said %q; want a line with what told it to stop", line)
		}
		if !strings.Contains(line, "informer-sync") {
			return "it does not say which check fails: " + line
		}
		return ""
	})
}

// TestQuitTellsWhereItIs ends a program that serves by SIGQUIT: the end of what it says is about our own code.
func TestQuitTellsWhereItIs(t *testing.T) {
	p := start(t, "--storage", "memory")
	must(t, p.cmd.Process.Signal(syscall.SIGQUIT))
	if status := p.wait(t); status != 128+int(syscall.SIGQUIT) {
		t.Errorf("exit status %d", status)
	}
	said := p.stderr.String()
	const kept = 16 << 10 // by envtest
	if tail := said[max(0, len(said)-kept):]; !strings.Contains(tail, "< program.serve:") || !strings.Contains(said, "< cache.") {
		t.Errorf("it said, in the end: %s", tail)
	}
}
