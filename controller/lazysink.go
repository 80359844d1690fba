// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// logRoot makes the logger that a lazySink stands for.
type logRoot interface {
	// enabled tells whether a level is logged. It may call real, which makes
	// the logger.
	enabled(level int, real func() logr.LogSink) bool
	realLogger() logr.Logger
}

// lazySink is a log sink that makes the real one when the first line is
// logged. Until then it only remembers what was added to it.
type lazySink struct {
	root   logRoot
	parent *lazySink // nil for the root's own sink
	add    func(logr.LogSink) logr.LogSink

	once   sync.Once
	sink   logr.LogSink
	offset int // the verbosity that the root's logger adds
}

var _ logr.CallDepthLogSink = (*lazySink)(nil)

// Init implements logr.LogSink. The real sink was initialised by whoever made
// it.
func (s *lazySink) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (s *lazySink) Enabled(level int) bool {
	return s.root.enabled(level, func() logr.LogSink { return s.real() })
}

// Info implements logr.LogSink.
func (s *lazySink) Info(level int, msg string, keysAndValues ...any) {
	if sink := s.real(); sink != nil {
		sink.Info(level+s.offset, msg, keysAndValues...)
	}
}

// Error implements logr.LogSink.
func (s *lazySink) Error(err error, msg string, keysAndValues ...any) {
	if sink := s.real(); sink != nil {
		sink.Error(err, msg, keysAndValues...)
	}
}

// WithValues implements logr.LogSink. Values that could change until a line is
// logged are given to the real sink at once, so that the line shows them as
// they were.
func (s *lazySink) WithValues(keysAndValues ...any) logr.LogSink {
	child := s.child(func(sink logr.LogSink) logr.LogSink { return sink.WithValues(keysAndValues...) })
	if !lasting(keysAndValues) {
		child.real()
	}
	return child
}

// WithName implements logr.LogSink.
func (s *lazySink) WithName(name string) logr.LogSink {
	return s.child(func(sink logr.LogSink) logr.LogSink { return sink.WithName(name) })
}

// WithCallDepth implements logr.CallDepthLogSink.
func (s *lazySink) WithCallDepth(depth int) logr.LogSink {
	return s.child(func(sink logr.LogSink) logr.LogSink {
		if deep, ok := sink.(logr.CallDepthLogSink); ok {
			return deep.WithCallDepth(depth)
		}
		return sink
	})
}

func (s *lazySink) child(add func(logr.LogSink) logr.LogSink) *lazySink {
	return &lazySink{root: s.root, parent: s, add: add}
}

// real makes the real sink, once. It is nil if the root's logger has none.
func (s *lazySink) real() logr.LogSink {
	s.once.Do(func() {
		if s.parent != nil {
			if sink := s.parent.real(); sink != nil {
				s.sink, s.offset = s.add(sink), s.parent.offset
			}
			return
		}
		// One more frame: the method of lazySink that was called.
		logger := s.root.realLogger().WithCallDepth(1)
		s.sink, s.offset = logger.GetSink(), logger.GetV()
	})
	return s.sink
}

// lasting tells whether the values are such that nobody can change them.
func lasting(values []any) bool {
	for _, v := range values {
		switch v.(type) {
		case nil, string, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64,
			time.Duration, time.Time, types.UID, types.NamespacedName, klog.ObjectRef:
		default:
			return false
		}
	}
	return true
}
