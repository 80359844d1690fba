// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package log

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// lines collects what a funcr logger writes.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger(o funcr.Options) logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, prefix+" "+args)
	}, o)
}

func (l *lines) String() string { return strings.Join(l.all, "\n") }

func never(t *testing.T) func() {
	return func() { t.Helper(); t.Error("warned of an unset logger") }
}

func TestDeferredKeepsDerivations(t *testing.T) {
	r := newRoot(never(t))
	top := logr.New(&deferredSink{root: r})
	values := []any{"k", "v"}
	child := top.WithName("a").WithValues(values...).WithName("b")
	sibling := top.WithName("a").WithValues("other", 1)
	values[1] = "changed by the caller"
	child.Info("lost")
	if child.Enabled() {
		t.Error("enabled before the promise is kept")
	}

	var out lines
	r.fulfil(out.logger(funcr.Options{Verbosity: 1}).GetSink())
	child.Info("hello", "x", 1)
	child.WithName("c").V(1).Info("deep")
	child.V(2).Info("too deep")
	sibling.Error(errors.New("boom"), "bad")
	want := `a/b "level"=0 "msg"="hello" "k"="v" "x"=1
a/b/c "level"=1 "msg"="deep" "k"="v"
a "msg"="bad" "error"="boom" "other"=1`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestDeferredFirstSinkWins(t *testing.T) {
	r := newRoot(never(t))
	var first, second lines
	l := logr.New(&deferredSink{root: r})
	r.fulfil(first.logger(funcr.Options{}).GetSink())
	r.fulfil(second.logger(funcr.Options{}).GetSink())
	l.Info("x")
	if len(first.all) != 1 || len(second.all) != 0 {
		t.Errorf("first has %q, second has %q", first.all, second.all)
	}
}

func TestDeferredZeroLoggerDiscards(t *testing.T) {
	r := newRoot(never(t))
	r.fulfil(logr.Logger{}.GetSink())
	l := logr.New(&deferredSink{root: r}).WithName("n").WithValues("a", 1)
	l.Info("x")
	l.Error(nil, "x")
	if l.Enabled() {
		t.Error("a zero logger must discard")
	}
}

// The caller that is blamed is the line that called the logger, before and after the promise is kept, for derived
// loggers of both kinds and with a call depth asked for.
func TestDeferredCaller(t *testing.T) {
	r := newRoot(never(t))
	early := logr.New(&deferredSink{root: r})
	earlyDeep := early.WithCallDepth(1)
	var out lines
	r.fulfil(out.logger(funcr.Options{LogCaller: funcr.All}).GetSink())
	_, _, line, _ := runtime.Caller(0)
	early.Info("x")
	early.WithName("late").Info("x")
	early.WithName("late").Error(nil, "x")
	func() {
		earlyDeep.Info("x")
	}() // the caller of the caller
	for i, above := range []int{1, 2, 3, 6} {
		if want := fmt.Sprintf(`"file"="deferred_test.go" "line"=%d`, line+above); !strings.Contains(out.all[i], want) {
			t.Errorf("line %d does not blame %s: %s", i, want, out.all[i])
		}
	}
}

func TestDeferredConcurrent(t *testing.T) {
	r := newRoot(never(t))
	var out lines
	top := logr.New(&deferredSink{root: r})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				top.WithName("n").WithValues("k", "v").Info("x")
			}
		})
	}
	wg.Go(func() { r.fulfil(out.logger(funcr.Options{}).GetSink()) })
	wg.Wait()
	top.Info("last")
	if n := len(out.all); n == 0 {
		t.Error("nothing was written")
	}
}

func TestDeferredWarnsOnceWhenUnset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		warned := 0
		r := newRoot(func() { warned++ })
		l := logr.New(&deferredSink{root: r})
		l.Info("early")
		time.Sleep(unsetAfter - time.Nanosecond)
		l.Info("just in time")
		if warned != 0 {
			t.Fatal("warned too early")
		}
		time.Sleep(time.Nanosecond)
		l.Info("late")
		l.Error(nil, "later")
		if warned != 1 {
			t.Fatalf("warned %d times, want once", warned)
		}
		var out lines
		r.fulfil(out.logger(funcr.Options{}).GetSink())
		l.Info("at last")
		if len(out.all) != 1 {
			t.Errorf("a logger set late must still be used, got %q", out.all)
		}
	})
}
