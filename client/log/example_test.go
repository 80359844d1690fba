// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"fmt"

	"github.com/go-logr/logr/funcr"

	"github.com/wherry-dev/wherry/client/log"
)

// Loggers may be made before the program has chosen where lines go.
func ExampleSetLogger() {
	early := log.Log.WithName("startup")
	log.SetLogger(funcr.New(func(prefix, args string) { fmt.Println(prefix, args) }, funcr.Options{}))
	early.Info("now it writes")
	// Output: startup "level"=0 "msg"="now it writes"
}

func ExampleFromContext() {
	logger := funcr.New(func(prefix, args string) { fmt.Println(prefix, args) }, funcr.Options{})
	ctx := log.IntoContext(context.Background(), logger.WithValues("object", "default/web"))
	log.FromContext(ctx, "replicas", 3).Info("scaled")
	// Output:  "level"=0 "msg"="scaled" "object"="default/web" "replicas"=3
}

func ExampleNewKubeAPIWarningLogger() {
	logger := funcr.New(func(_, args string) { fmt.Println(args) }, funcr.Options{})
	ctx := log.IntoContext(context.Background(), logger)
	w := log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: true})
	w.HandleWarningHeaderWithContext(ctx, 299, "-", "extensions/v1beta1 Ingress is gone")
	w.HandleWarningHeaderWithContext(ctx, 299, "-", "extensions/v1beta1 Ingress is gone")
	// Output: "level"=0 "msg"="extensions/v1beta1 Ingress is gone"
}

// Options say whether a warning that comes with each answer is written each time.
func ExampleKubeAPIWarningLoggerOptions() {
	for _, opts := range []log.KubeAPIWarningLoggerOptions{{}, {Deduplicate: true}} {
		lines := 0
		ctx := log.IntoContext(context.Background(), funcr.New(func(string, string) { lines++ }, funcr.Options{}))
		w := log.NewKubeAPIWarningLogger(opts)
		for range 3 {
			w.HandleWarningHeaderWithContext(ctx, 299, "-", "extensions/v1beta1 Ingress is gone")
		}
		fmt.Println(opts.Deduplicate, lines)
	}
	// Output:
	// false 3
	// true 1
}

// Code that is called with the context writes with what its caller has added.
func ExampleIntoContext() {
	scale := func(ctx context.Context) { log.FromContext(ctx).Info("scaled") }

	logger := funcr.New(func(prefix, args string) { fmt.Println(prefix, args) }, funcr.Options{})
	scale(log.IntoContext(context.Background(), logger.WithName("web").WithValues("reconcileID", "4711")))
	// Output: web "level"=0 "msg"="scaled" "reconcileID"="4711"
}

// A context of one's own makes its logger when somebody asks for it.
func ExampleContextKey() {
	sink := funcr.New(func(_, args string) { fmt.Println(args) }, funcr.Options{})
	ctx := context.WithValue(context.Background(), log.ContextKey(), sink)
	log.FromContext(ctx).Info("found")
	// Output: "level"=0 "msg"="found"
}
