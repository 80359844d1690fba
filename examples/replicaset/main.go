// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command replicaset runs the ReplicaSet reconciler of this example against the
// cluster of your kubeconfig, which should be one that has no ReplicaSet
// controller of its own, such as the embedded API server of `make run`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log/zap"
	"github.com/wherry-dev/wherry/examples/replicaset/reconciler"
	"github.com/wherry-dev/wherry/manager/metrics/server"
)

// reachTimeout bounds the questions asked of the API server before the manager
// starts; one that does not answer by then counts as not reachable.
const reachTimeout = 10 * time.Second

func main() {
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "replicaset: "+strings.ReplaceAll(err.Error(), "\n", "; ")) // one line, whatever was joined
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	force := flag.Bool("force", false, "Run even if the cluster's own ReplicaSet controller seems to be alive.")
	sample := flag.Bool("sample", false, "Create the ReplicaSet default/web if it is absent, and say what to try with it.")
	metrics := flag.String("metrics-bind-address", "0", "`ADDRESS` to serve metrics on, such as 127.0.0.1:8080; 0 serves none.")
	logs := zap.Options{Development: true}
	logs.BindFlags(flag.CommandLine)
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: it takes flags only (see -help)", flag.Arg(0))
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logs)))

	cfg, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	options := ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: *metrics}}
	if err := reconciler.RequireReadYourWrites(options); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return err
	}
	rs := &reconciler.ReplicaSet{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Scheme: scheme}
	if err := rs.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := prepare(ctx, mgr, *force, *sample); err != nil {
		return unreachable(cfg.Host, err)
	}
	return mgr.Start(ctx)
}

// prepare asks what must be known of the cluster before the manager starts.
func prepare(ctx context.Context, mgr ctrl.Manager, force, sample bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, errNoAnswer)
	defer cancel()
	// Ask once before the manager does: it would wait for a server to appear.
	if err := mgr.GetAPIReader().List(ctx, &appsv1.ReplicaSetList{}, client.Limit(1)); err != nil {
		return err
	}
	if !force {
		if err := reconciler.RefuseRival(ctx, mgr.GetAPIReader()); err != nil {
			return err
		}
	}
	if sample {
		return createSample(ctx, mgr.GetClient())
	}
	return nil
}

var errNoAnswer = fmt.Errorf("no answer within %v", reachTimeout)

// unreachable says so, with the remedy, if err came from the network rather
// than from an API server.
func unreachable(host string, err error) error {
	var network interface{ Timeout() bool }
	if errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("API server %s is not reachable: start it, or name another with --kubeconfig or KUBECONFIG: %w", host, err)
	}
	return err
}
