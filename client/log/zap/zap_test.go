// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package zap_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	uzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client/log/zap"
)

// decode gives the lines of a JSON log.
func decode(t *testing.T, out *bytes.Buffer) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(out.String()) {
		m := map[string]any{}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, m)
	}
	return all
}

func TestModes(t *testing.T) {
	for name, c := range map[string]struct {
		opts            []zap.Opts
		json, debug     bool
		warnHasStack    bool
		dpanicsForWrong bool
	}{
		"production":          {nil, true, false, false, false},
		"development":         {[]zap.Opts{zap.UseDevMode(true)}, false, true, true, true},
		"development, json":   {[]zap.Opts{zap.UseDevMode(true), zap.JSONEncoder()}, true, true, true, true},
		"production, console": {[]zap.Opts{zap.ConsoleEncoder()}, false, false, false, false},
		"last one wins":       {[]zap.Opts{zap.UseDevMode(true), zap.UseDevMode(false)}, true, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			l := zap.NewRaw(append(c.opts, zap.WriteTo(&out))...)
			l.Info("at info")
			if got := json.Valid(out.Bytes()); got != c.json {
				t.Errorf("JSON is %v: %s", got, out.String())
			}
			out.Reset()
			l.Debug("at debug")
			if got := out.Len() > 0; got != c.debug {
				t.Errorf("debug is written: %v", got)
			}
			out.Reset()
			l.Warn("at warn")
			if got := strings.Contains(out.String(), "testing.tRunner"); got != c.warnHasStack {
				t.Errorf("a warning has a stack trace: %v", got)
			}
			out.Reset()
			l.Error("at error")
			if !strings.Contains(out.String(), "testing.tRunner") {
				t.Error("an error has no stack trace")
			}
			defer func() {
				if got := recover() != nil; got != c.dpanicsForWrong {
					t.Errorf("DPanic panics: %v", got)
				}
			}()
			l.DPanic("a bug")
		})
	}
}

func TestTimeIsRFC3339(t *testing.T) {
	var out bytes.Buffer
	zap.New(zap.WriteTo(&out)).Info("x")
	if _, err := time.Parse(time.RFC3339, decode(t, &out)[0]["ts"].(string)); err != nil {
		t.Error(err)
	}
}

func TestSampling(t *testing.T) {
	for name, c := range map[string]struct {
		opts []zap.Opts
		want int
	}{
		"production":                    {nil, 104}, // 100 first, then the 200th, 300th, 400th, 500th
		"development":                   {[]zap.Opts{zap.UseDevMode(true)}, 500},
		"debug level is still sampled":  {[]zap.Opts{zap.Level(zapcore.DebugLevel)}, 104},
		"deep verbosity is not sampled": {[]zap.Opts{zap.Level(zapcore.Level(-5))}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				l := zap.New(append(c.opts, zap.WriteTo(&out))...)
				for range 500 {
					l.Info("again")
				}
				if got := strings.Count(out.String(), "again"); got != c.want {
					t.Errorf("%d lines, want %d", got, c.want)
				}
				l.V(4).Info("deep") // must not panic in the sampler
			})
		})
	}
}

func TestOptionsReachZap(t *testing.T) {
	var out bytes.Buffer
	l := zap.New(zap.WriteTo(&out), zap.Level(uzap.NewAtomicLevelAt(zapcore.Level(-3))), zap.StacktraceLevel(zapcore.PanicLevel),
		zap.RawZapOpts(uzap.Fields(uzap.String("a", "1"))), zap.RawZapOpts(uzap.Fields(uzap.String("b", "2"))),
		zap.JSONEncoder(func(c *zapcore.EncoderConfig) { c.MessageKey = "text" }))
	l.V(3).Info("in")
	l.V(4).Info("out")
	l.Error(errors.New("boom"), "bad")
	got := decode(t, &out)
	if len(got) != 2 || got[0]["text"] != "in" || got[0]["a"] != "1" || got[0]["b"] != "2" {
		t.Errorf("got %v", got)
	}
	if got[1]["error"] != "boom" || got[1]["stacktrace"] != nil {
		t.Errorf("got %v", got[1])
	}
}

func TestObjectsAreNamed(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{"secret": "s"}}}
	kinded := pod.DeepCopy()
	kinded.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w"}}}
	key := types.NamespacedName{Namespace: "ns", Name: "k"}
	for name, c := range map[string]struct {
		value any
		want  any
	}{
		"typed":         {pod, map[string]any{"type": "*v1.Pod", "namespace": "ns", "name": "p"}},
		"with kind":     {kinded, map[string]any{"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "p"}},
		"unstructured":  {u, map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w"}},
		"list":          {&corev1.PodList{}, map[string]any{"type": "*v1.PodList"}},
		"nil":           {(*corev1.Pod)(nil), map[string]any{"nil": "*v1.Pod"}},
		"key":           {key, map[string]any{"namespace": "ns", "name": "k"}},
		"key pointer":   {&key, map[string]any{"namespace": "ns", "name": "k"}},
		"cluster scope": {types.NamespacedName{Name: "k"}, map[string]any{"name": "k"}},
		"something":     {map[string]int{"a": 1}, map[string]any{"a": 1.0}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			l := zap.New(zap.WriteTo(&out))
			l.Info("in the line", "v", c.value)
			l.WithValues("v", c.value).Info("before")
			l.WithValues("v", c.value).WithName("n").Info("before, named")
			for _, line := range decode(t, &out) {
				if !reflect.DeepEqual(line["v"], c.want) {
					t.Errorf("%s: got %v, want %v", line["msg"], line["v"], c.want)
				}
			}
		})
	}
}

func TestObjectsAreWrittenInFullInDevelopment(t *testing.T) {
	var out bytes.Buffer
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"my": "label"}}}
	l := zap.New(zap.WriteTo(&out), zap.UseDevMode(true))
	l.Info("x", "pod", pod, "key", types.NamespacedName{Namespace: "ns", Name: "k"})
	l.WithValues("pod", pod).Info("x")
	if strings.Count(out.String(), "label") < 2 || !strings.Contains(out.String(), `"namespace":"ns"`) {
		t.Errorf("got %s", out.String())
	}
}

// One slice of fields goes to all cores of a tee: the encoder must not write to it.
func TestEncoderLeavesFieldsAlone(t *testing.T) {
	enc := &zap.KubeAwareEncoder{Encoder: zapcore.NewJSONEncoder(zapcore.EncoderConfig{})}
	fields := []zapcore.Field{uzap.Any("pod", &corev1.Pod{})}
	before := fields[0]
	if _, err := enc.Clone().EncodeEntry(zapcore.Entry{}, fields); err != nil {
		t.Fatal(err)
	}
	if !fields[0].Equals(before) {
		t.Error("the caller's fields were changed")
	}
}

func TestFlags(t *testing.T) {
	for args, c := range map[string]struct{ check func(o *zap.Options) bool }{
		"":                                {func(o *zap.Options) bool { return o.Level == nil && !o.Development && o.NewEncoder == nil }},
		"--zap-devel":                     {func(o *zap.Options) bool { return o.Development }},
		"--zap-encoder=console":           {func(o *zap.Options) bool { return o.NewEncoder != nil }},
		"--zap-encoder=JSON":              {func(o *zap.Options) bool { return o.NewEncoder != nil }},
		"--zap-log-level=debug":           {func(o *zap.Options) bool { return o.Level.Enabled(-1) && !o.Level.Enabled(-2) }},
		"--zap-log-level=info":            {func(o *zap.Options) bool { return o.Level.Enabled(0) && !o.Level.Enabled(-1) }},
		"--zap-log-level=Error":           {func(o *zap.Options) bool { return o.Level.Enabled(2) && !o.Level.Enabled(1) }},
		"--zap-log-level=panic":           {func(o *zap.Options) bool { return o.Level.Enabled(4) && !o.Level.Enabled(3) }},
		"--zap-log-level=5":               {func(o *zap.Options) bool { return o.Level.Enabled(-5) && !o.Level.Enabled(-6) }},
		"--zap-stacktrace-level=info":     {func(o *zap.Options) bool { return o.StacktraceLevel.Enabled(0) }},
		"--zap-stacktrace-level=panic":    {func(o *zap.Options) bool { return !o.StacktraceLevel.Enabled(2) }},
		"--zap-time-encoding=epoch":       {func(o *zap.Options) bool { return o.TimeEncoder != nil }},
		"--zap-time-encoding=rfc3339":     {func(o *zap.Options) bool { return o.TimeEncoder != nil }},
		"--zap-time-encoding=iso8601":     {func(o *zap.Options) bool { return o.TimeEncoder != nil }},
		"--zap-log-level=0":               {nil},
		"--zap-log-level=-1":              {nil},
		"--zap-log-level=128":             {nil},
		"--zap-log-level=loud":            {nil},
		"--zap-stacktrace-level=loud":     {nil},
		"--zap-encoder=xml":               {nil},
		"--zap-time-encoding=sundial":     {nil},
		"--zap-time-encoding=rfc3339n":    {nil},
		"--zap-devel=perhaps":             {nil},
		"--zap-time-encoding=millis":      {func(o *zap.Options) bool { return o.TimeEncoder != nil }},
		"--zap-time-encoding=nano":        {func(o *zap.Options) bool { return o.TimeEncoder != nil }},
		"--zap-time-encoding=rfc3339nano": {func(o *zap.Options) bool { return o.TimeEncoder != nil }},
	} {
		t.Run(args, func(t *testing.T) {
			var o zap.Options
			fs := flag.NewFlagSet("", flag.ContinueOnError)
			fs.SetOutput(io.Discard)
			o.BindFlags(fs)
			err := fs.Parse(strings.Fields(args))
			if c.check == nil {
				if err == nil {
					t.Fatal("accepted")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !c.check(&o) {
				t.Errorf("options are %+v", o)
			}
		})
	}
}

// What the flags chose is what is written, and one Options may serve for many loggers.
func TestFlagsReachTheLogger(t *testing.T) {
	o := zap.Options{Development: true}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	o.BindFlags(fs)
	if err := fs.Parse([]string{"--zap-devel=false", "--zap-log-level=2", "--zap-time-encoding=millis"}); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf("%p %v", o.Level, o.DestWriter)
	for range 2 {
		var out bytes.Buffer
		l := zap.New(zap.UseFlagOptions(&o), zap.WriteTo(&out))
		l.V(2).Info("in")
		l.V(3).Info("out")
		got := decode(t, &out)
		if len(got) != 1 || got[0]["msg"] != "in" {
			t.Fatalf("got %v", got)
		}
		if _, ok := got[0]["ts"].(float64); !ok {
			t.Errorf("time is %v", got[0]["ts"])
		}
	}
	if after := fmt.Sprintf("%p %v", o.Level, o.DestWriter); after != before || len(o.ZapOpts) != 0 {
		t.Errorf("making a logger changed the options: %s, %s", before, after)
	}
}

func TestFlagDefaultsCanBePrinted(t *testing.T) {
	var out bytes.Buffer
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	fs.SetOutput(&out)
	(&zap.Options{}).BindFlags(fs)
	fs.PrintDefaults() // calls String on zero values
	for _, name := range []string{"devel", "encoder", "log-level", "stacktrace-level", "time-encoding"} {
		if !strings.Contains(out.String(), "-zap-"+name) {
			t.Errorf("no flag zap-%s", name)
		}
	}
}
