// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package zap

import (
	"slices"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// New makes a logger for log.SetLogger. The package comment tells the defaults.
func New(opts ...Opts) logr.Logger {
	return zapr.NewLogger(NewRaw(opts...))
}

// NewRaw makes the zap logger that New wraps, for programs that also speak to zap directly.
func NewRaw(opts ...Opts) *zap.Logger {
	var o Options
	for _, opt := range opts {
		opt(&o)
		o.ZapOpts = slices.Clip(o.ZapOpts) // an Options taken over from a flag set must not share its spare room
	}
	o = o.settle()
	encoder := &KubeAwareEncoder{Encoder: o.Encoder, Verbose: o.Development}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(o.DestWriter)), o.Level)
	if !o.Development {
		core = shortCore{core}
	}
	return zap.New(core, o.ZapOpts...)
}
