// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package log

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// unsetAfter is how long a program may leave its logger unset before a line that would have been written makes us say
// so.
const unsetAfter = 30 * time.Second

// root is what all loggers made from one promise share. It never knows its descendants: each of them asks it, so that
// short-lived loggers made before SetLogger are garbage as soon as their maker forgets them.
type root struct {
	born    time.Time
	sink    atomic.Pointer[logr.LogSink] // nil until fulfilled, then never changed
	warned  atomic.Bool
	onUnset func()
}

func newRoot(onUnset func()) *root {
	return &root{born: time.Now(), onUnset: onUnset}
}

// fulfil keeps the first sink it is given and ignores the others.
func (r *root) fulfil(sink logr.LogSink) {
	if sink == nil {
		sink = NullLogSink{}
	}
	r.sink.CompareAndSwap(nil, &sink)
}

// get gives the real sink, or nil; asked in vain for too long, it complains once.
func (r *root) get() logr.LogSink {
	if s := r.sink.Load(); s != nil {
		return *s
	}
	if !r.warned.Load() && time.Since(r.born) >= unsetAfter && r.warned.CompareAndSwap(false, true) {
		r.onUnset()
	}
	return nil
}

// warnUnset writes to standard error because there is, by definition, no logger to write to.
func warnUnset() {
	fmt.Fprintf(os.Stderr, "log: SetLogger was not called within %s of the program's start, so log lines are dropped. "+
		"Call it early in main, for example log.SetLogger(zap.New()). The first line lost was written here:\n%s",
		unsetAfter, debug.Stack())
}

// step is one derivation (a name, some values, a call depth) that waits for the real sink.
type step func(logr.LogSink) logr.LogSink

// settled is a deferredSink's share of the real sink, made once.
type settled struct {
	own    logr.LogSink // for sinks derived from here on: they are called by logr directly
	behind logr.LogSink // for our own Info and Error, which stand between logr and the sink as one more stack frame
}

// deferredSink is a sink that remembers how it was derived from the root until there is a real sink to derive from.
type deferredSink struct {
	root  *root
	steps []step // never changed after the sink is made
	real  atomic.Pointer[settled]
}

var (
	_ logr.LogSink          = &deferredSink{}
	_ logr.CallDepthLogSink = &deferredSink{}
)

// resolve gives the real sinks, or nil while there are none.
func (d *deferredSink) resolve() *settled {
	if r := d.real.Load(); r != nil {
		return r
	}
	sink := d.root.get()
	if sink == nil {
		return nil
	}
	for _, s := range d.steps {
		sink = s(sink)
	}
	r := &settled{own: sink, behind: deeper(sink, 1)}
	d.real.Store(r) // two racing goroutines store equal values
	return r
}

// derive gives the sink one step further.
func (d *deferredSink) derive(s step) logr.LogSink {
	if r := d.resolve(); r != nil {
		return s(r.own)
	}
	return &deferredSink{root: d.root, steps: append(slices.Clip(d.steps), s)}
}

// Init does nothing: whoever made the real sink has told it what it needs.
func (d *deferredSink) Init(logr.RuntimeInfo) {}

// Enabled is false until the promise is kept.
func (d *deferredSink) Enabled(level int) bool {
	r := d.resolve()
	return r != nil && r.own.Enabled(level)
}

// Info hands the line on.
func (d *deferredSink) Info(level int, msg string, keysAndValues ...any) {
	if r := d.resolve(); r != nil {
		r.behind.Info(level, msg, keysAndValues...)
	}
}

// Error hands the line on.
func (d *deferredSink) Error(err error, msg string, keysAndValues ...any) {
	if r := d.resolve(); r != nil {
		r.behind.Error(err, msg, keysAndValues...)
	}
}

// WithName derives a sink with one more name.
func (d *deferredSink) WithName(name string) logr.LogSink {
	return d.derive(func(s logr.LogSink) logr.LogSink { return s.WithName(name) })
}

// WithValues derives a sink with more values. The caller may change its slice afterwards.
func (d *deferredSink) WithValues(keysAndValues ...any) logr.LogSink {
	kept := slices.Clone(keysAndValues)
	return d.derive(func(s logr.LogSink) logr.LogSink { return s.WithValues(kept...) })
}

// WithCallDepth derives a sink that blames a caller further up.
func (d *deferredSink) WithCallDepth(depth int) logr.LogSink {
	return d.derive(func(s logr.LogSink) logr.LogSink { return deeper(s, depth) })
}

// deeper gives s told to skip more stack frames, if it knows how.
func deeper(s logr.LogSink, depth int) logr.LogSink {
	if c, ok := s.(logr.CallDepthLogSink); ok {
		return c.WithCallDepth(depth)
	}
	return s
}
