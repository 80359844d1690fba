// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package zap

import (
	"io"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// In production mode, of the lines with one text and level the first sampleFirst in each sampleTick are written, and
// from then on every sampleThereafter-th.
const (
	sampleTick       = time.Second
	sampleFirst      = 100
	sampleThereafter = 100
)

// EncoderConfigOption changes the configuration of an encoder before it is made.
type EncoderConfigOption func(*zapcore.EncoderConfig)

// NewEncoderFunc makes an encoder.
type NewEncoderFunc func(...EncoderConfigOption) zapcore.Encoder

// Opts changes Options. Later ones win over earlier ones.
type Opts func(*Options)

// Options says how a logger writes. The zero value is production mode; each field left zero takes the default of the
// mode.
type Options struct {
	// Development chooses the defaults: console encoder, debug level and stack traces from warnings on, instead of
	// JSON, info level and stack traces from errors on. It also makes zap panic on DPanic lines, switches sampling off
	// and writes Kubernetes objects in full.
	Development bool

	// Encoder writes the lines. When it is set, NewEncoder, EncoderConfigOptions and TimeEncoder are not looked at.
	Encoder zapcore.Encoder

	// EncoderConfigOptions are handed to NewEncoder.
	EncoderConfigOptions []EncoderConfigOption

	// NewEncoder makes the encoder if Encoder is nil. Nil: the mode's default.
	NewEncoder NewEncoderFunc

	// DestWriter is where lines go, one Write each, under a lock. Nil: standard error.
	DestWriter io.Writer

	// Level is the least severe level that is written. A zap level of -n is logr's V(n).
	Level zapcore.LevelEnabler

	// StacktraceLevel is the least severe level that is written with a stack trace.
	StacktraceLevel zapcore.LevelEnabler

	// ZapOpts are handed to zap last, so they win over what the fields above have settled.
	ZapOpts []zap.Option

	// TimeEncoder writes the time stamp. Nil: RFC 3339 with seconds.
	TimeEncoder zapcore.TimeEncoder
}

// settle fills what the caller left open. It works on a copy, so that one Options can serve for many loggers.
func (o Options) settle() Options {
	newEncoder, level, stack := newJSONEncoder, zapcore.InfoLevel, zapcore.ErrorLevel
	if o.Development {
		newEncoder, level, stack = newConsoleEncoder, zapcore.DebugLevel, zapcore.WarnLevel
	}
	if o.DestWriter == nil {
		o.DestWriter = os.Stderr
	}
	if o.NewEncoder == nil {
		o.NewEncoder = newEncoder
	}
	if o.Level == nil {
		o.Level = zap.NewAtomicLevelAt(level)
	}
	if o.StacktraceLevel == nil {
		o.StacktraceLevel = zap.NewAtomicLevelAt(stack)
	}
	if o.TimeEncoder == nil {
		o.TimeEncoder = zapcore.RFC3339TimeEncoder
	}
	if o.Encoder == nil {
		// The time encoder goes first: an explicit config option is closer to what the caller wants.
		withTime := func(c *zapcore.EncoderConfig) { c.EncodeTime = o.TimeEncoder }
		o.Encoder = o.NewEncoder(append([]EncoderConfigOption{withTime}, o.EncoderConfigOptions...)...)
	}
	o.ZapOpts = append(o.modeOptions(), o.ZapOpts...)
	return o
}

// modeOptions gives the zap options that the mode, the levels and the writer call for.
func (o Options) modeOptions() []zap.Option {
	opts := []zap.Option{
		zap.AddStacktrace(o.StacktraceLevel),
		zap.ErrorOutput(zapcore.Lock(zapcore.AddSync(o.DestWriter))),
	}
	switch {
	case o.Development:
		opts = append(opts, zap.Development())
	case !o.Level.Enabled(zapcore.Level(-2)):
		// zap's sampler counts in an array indexed by level and has no slots below debug, so V(2) and more go unsampled.
		opts = append(opts, zap.WrapCore(func(c zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(c, sampleTick, sampleFirst, sampleThereafter)
		}))
	}
	return opts
}

// UseDevMode sets Options.Development.
func UseDevMode(enabled bool) Opts {
	return func(o *Options) { o.Development = enabled }
}

// WriteTo sets Options.DestWriter.
func WriteTo(out io.Writer) Opts {
	return func(o *Options) { o.DestWriter = out }
}

// Encoder sets Options.Encoder.
func Encoder(encoder zapcore.Encoder) func(o *Options) {
	return func(o *Options) { o.Encoder = encoder }
}

// JSONEncoder writes JSON lines.
func JSONEncoder(opts ...EncoderConfigOption) func(o *Options) {
	return func(o *Options) { o.Encoder = newJSONEncoder(opts...) }
}

// ConsoleEncoder writes lines for human eyes: tab-separated text with the values as JSON behind.
func ConsoleEncoder(opts ...EncoderConfigOption) func(o *Options) {
	return func(o *Options) { o.Encoder = newConsoleEncoder(opts...) }
}

// Level sets Options.Level.
func Level(level zapcore.LevelEnabler) func(o *Options) {
	return func(o *Options) { o.Level = level }
}

// StacktraceLevel sets Options.StacktraceLevel.
func StacktraceLevel(stacktraceLevel zapcore.LevelEnabler) func(o *Options) {
	return func(o *Options) { o.StacktraceLevel = stacktraceLevel }
}

// RawZapOpts adds to Options.ZapOpts.
func RawZapOpts(zapOpts ...zap.Option) func(o *Options) {
	return func(o *Options) { o.ZapOpts = append(o.ZapOpts, zapOpts...) }
}

// UseFlagOptions takes all options from in, which is usually bound to flags, as it is when the logger is made. Whatever
// options stood before it are lost; put it first.
func UseFlagOptions(in *Options) Opts {
	return func(o *Options) { *o = *in }
}
