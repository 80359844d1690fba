// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package zap_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	uzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client/log/zap"
)

// noTime keeps out what changes from run to run.
func noTime(c *zapcore.EncoderConfig) { c.TimeKey = "" }

func ExampleNew() {
	l := zap.New(zap.WriteTo(os.Stdout), zap.JSONEncoder(noTime))
	l.WithName("web").Info("scaled", "object", types.NamespacedName{Namespace: "default", Name: "web"}, "replicas", 3)
	// Output: {"level":"info","logger":"web","msg":"scaled","object":{"name":"web","namespace":"default"},"replicas":3}
}

func ExampleNewRaw() {
	l := zap.NewRaw(zap.WriteTo(os.Stdout), zap.ConsoleEncoder(noTime))
	l.Info("ready")
	// Output: INFO	ready
}

func ExampleOptions_BindFlags() {
	opts := zap.Options{EncoderConfigOptions: []zap.EncoderConfigOption{noTime}, DestWriter: os.Stdout}
	fs := flag.NewFlagSet("operator", flag.ContinueOnError)
	opts.BindFlags(fs)
	if err := fs.Parse([]string{"--zap-log-level=2", "--zap-encoder=console"}); err != nil {
		fmt.Println(err)
		return
	}
	l := zap.New(zap.UseFlagOptions(&opts))
	l.V(2).Info("written")
	l.V(3).Info("not written")
	// Output: LEVEL(-2)	written
}

func ExampleKubeAwareEncoder() {
	enc := &zap.KubeAwareEncoder{Encoder: zapcore.NewJSONEncoder(zapcore.EncoderConfig{})}
	buf, err := enc.EncodeEntry(zapcore.Entry{}, []zapcore.Field{
		{Key: "key", Type: zapcore.StringerType, Interface: types.NamespacedName{Namespace: "a", Name: "b"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(buf)
	// Output: {"key":{"namespace":"a","name":"b"}}
}

// What is left zero takes the default of the mode.
func ExampleOptions() {
	opts := zap.Options{
		DestWriter:           os.Stdout,
		Level:                zapcore.Level(-2), // V(2), in logr's words
		EncoderConfigOptions: []zap.EncoderConfigOption{noTime},
	}
	l := zap.New(zap.UseFlagOptions(&opts))
	l.V(2).Info("written")
	l.V(3).Info("not written")
	// Output: {"level":"Level(-2)","msg":"written"}
}

func ExampleWriteTo() {
	var lines bytes.Buffer // a lock is around it: loggers of many goroutines may share it
	zap.New(zap.WriteTo(&lines), zap.JSONEncoder(noTime)).Info("ready")
	fmt.Print(lines.String())
	// Output: {"level":"info","msg":"ready"}
}

func ExampleLevel() {
	level := uzap.NewAtomicLevelAt(zapcore.ErrorLevel)
	l := zap.New(zap.WriteTo(os.Stdout), zap.JSONEncoder(noTime), zap.Level(level))
	l.Info("not written")
	level.SetLevel(zapcore.InfoLevel) // while the program runs
	l.Info("written")
	// Output: {"level":"info","msg":"written"}
}

// An encoder of the program's own takes the place of both that are built in.
func ExampleEncoder() {
	enc := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "message"})
	zap.New(zap.WriteTo(os.Stdout), zap.Encoder(enc)).Info("ready", "replicas", 3)
	// Output: {"message":"ready","replicas":3}
}

func ExampleJSONEncoder() {
	shout := func(c *zapcore.EncoderConfig) { c.EncodeLevel = zapcore.CapitalLevelEncoder }
	zap.New(zap.WriteTo(os.Stdout), zap.JSONEncoder(noTime, shout)).Info("ready")
	// Output: {"level":"INFO","msg":"ready"}
}

func ExampleConsoleEncoder() {
	bars := func(c *zapcore.EncoderConfig) { c.ConsoleSeparator = " | " }
	zap.New(zap.WriteTo(os.Stdout), zap.ConsoleEncoder(noTime, bars)).Info("scaled", "replicas", 3)
	// Output: INFO | scaled | {"replicas": 3}
}

// Errors have stack traces unless the level for them is above.
func ExampleStacktraceLevel() {
	for _, level := range []zapcore.Level{zapcore.ErrorLevel, zapcore.PanicLevel} {
		var line bytes.Buffer
		l := zap.New(zap.WriteTo(&line), zap.JSONEncoder(noTime), zap.StacktraceLevel(level))
		l.Error(errors.New("no answer"), "cannot scale")
		fmt.Println(level, strings.Contains(line.String(), `"stacktrace"`))
	}
	// Output:
	// error true
	// panic false
}

// Whatever else zap can do is within reach.
func ExampleRawZapOpts() {
	version := uzap.Fields(uzap.String("version", "1.2.3"))
	zap.New(zap.WriteTo(os.Stdout), zap.JSONEncoder(noTime), zap.RawZapOpts(version)).Info("ready")
	// Output: {"level":"info","msg":"ready","version":"1.2.3"}
}

// Development mode writes debug lines, for human eyes.
func ExampleUseDevMode() {
	l := zap.New(zap.UseDevMode(true), zap.WriteTo(os.Stdout), zap.ConsoleEncoder(noTime))
	l.V(1).Info("a detail")
	// Output: DEBUG	a detail
}

// It comes first, because it takes all options; those behind it win.
func ExampleUseFlagOptions() {
	flags := zap.Options{DestWriter: os.Stderr, Level: zapcore.ErrorLevel, StacktraceLevel: zapcore.PanicLevel}
	l := zap.New(zap.UseFlagOptions(&flags), zap.WriteTo(os.Stdout), zap.JSONEncoder(noTime))
	l.Info("not written: the level is that of the flags")
	l.WithName("web").Error(nil, "written", "replicas", 3)
	// Output: {"level":"error","logger":"web","msg":"written","replicas":3}
}
