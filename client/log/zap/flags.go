// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package zap

import (
	"flag"
	"fmt"
	"strconv"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// choice is a flag that takes one of a few words.
type choice struct {
	what  string
	words map[string]func()
	other func(string) bool // tried on anything that is not one of words; may be nil
	value string
}

func (c *choice) Set(s string) error {
	word := strings.ToLower(s)
	switch set, ok := c.words[word]; {
	case ok:
		set()
	case c.other == nil || !c.other(word):
		return fmt.Errorf("invalid %s %q", c.what, s)
	}
	c.value = s
	return nil
}

func (c *choice) String() string { return c.value }

// BindFlags registers the flags zap-devel, zap-encoder, zap-log-level, zap-stacktrace-level and zap-time-encoding with
// fs. What the user gives lands in o; what o holds before is what counts for flags that are not given. The flags write
// to o until fs is parsed, so hand o to UseFlagOptions after that.
func (o *Options) BindFlags(fs *flag.FlagSet) {
	fs.BoolVar(&o.Development, "zap-devel", o.Development,
		"Development mode: console encoder, level debug, stack traces from warnings on, no sampling. "+
			"Production mode: json encoder, level info, stack traces from errors on, sampling.")
	fs.Var(o.encoderFlag(), "zap-encoder", "How log lines are written: 'json' or 'console'.")
	fs.Var(o.levelFlag("log level", func(l zap.AtomicLevel) { o.Level = l }), "zap-log-level",
		"The least severe level that is logged: 'debug', 'info', 'error', 'panic', or a number above 0 "+
			"for debug lines of that verbosity and below.")
	fs.Var(o.levelFlag("stack trace level", func(l zap.AtomicLevel) { o.StacktraceLevel = l }), "zap-stacktrace-level",
		"The least severe level that is logged with a stack trace: 'info', 'error' or 'panic'.")
	fs.Var(o.timeFlag(), "zap-time-encoding",
		"How times are written: 'epoch', 'millis', 'nano', 'iso8601', 'rfc3339' or 'rfc3339nano'. Default: 'rfc3339'.")
}

func (o *Options) encoderFlag() *choice {
	use := func(n NewEncoderFunc) func() { return func() { o.NewEncoder = n } }
	return &choice{what: "log encoder", words: map[string]func(){
		"json":    use(newJSONEncoder),
		"console": use(newConsoleEncoder),
	}}
}

func (o *Options) levelFlag(what string, set func(zap.AtomicLevel)) *choice {
	use := func(l zapcore.Level) func() { return func() { set(zap.NewAtomicLevelAt(l)) } }
	return &choice{what: what, words: map[string]func(){
		"debug": use(zapcore.DebugLevel),
		"info":  use(zapcore.InfoLevel),
		"error": use(zapcore.ErrorLevel),
		"panic": use(zapcore.PanicLevel),
	}, other: func(s string) bool {
		n, err := strconv.ParseInt(s, 10, 8)
		if err != nil || n <= 0 {
			return false
		}
		set(zap.NewAtomicLevelAt(zapcore.Level(-n)))
		return true
	}}
}

func (o *Options) timeFlag() *choice {
	use := func(e zapcore.TimeEncoder) func() { return func() { o.TimeEncoder = e } }
	return &choice{what: "time encoding", words: map[string]func(){
		"epoch":       use(zapcore.EpochTimeEncoder),
		"millis":      use(zapcore.EpochMillisTimeEncoder),
		"nano":        use(zapcore.EpochNanosTimeEncoder),
		"iso8601":     use(zapcore.ISO8601TimeEncoder),
		"rfc3339":     use(zapcore.RFC3339TimeEncoder),
		"rfc3339nano": use(zapcore.RFC3339NanoTimeEncoder),
	}}
}
