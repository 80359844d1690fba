// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package log

import "github.com/go-logr/logr"

// NullLogSink is a logr.LogSink that drops everything. Its zero value is ready.
type NullLogSink struct{}

var _ logr.LogSink = NullLogSink{}

// Init does nothing.
func (NullLogSink) Init(logr.RuntimeInfo) {}

// Enabled is always false.
func (NullLogSink) Enabled(int) bool { return false }

// Info drops the line.
func (NullLogSink) Info(int, string, ...any) {}

// Error drops the line.
func (NullLogSink) Error(error, string, ...any) {}

// WithName gives the same sink.
func (n NullLogSink) WithName(string) logr.LogSink { return n }

// WithValues gives the same sink.
func (n NullLogSink) WithValues(...any) logr.LogSink { return n }
