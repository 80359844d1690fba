// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package zap_test

import (
	"flag"
	"fmt"
	"os"

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
