// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command replicaset runs the ReplicaSet reconciler of the example as the row
// compares it with Kubernetes' own: as many workers, no client throttling, and
// nothing beside it. It says "running" when it has seen the cluster's state.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client/log/zap"
	"github.com/wherry-dev/wherry/examples/replicaset/reconciler"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/config"
	"github.com/wherry-dev/wherry/manager/metrics/server"
)

func main() {
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "replicaset: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	workers := flag.Int("workers", 1, "how many sets are looked at at a time")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	cfg.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{MaxConcurrentReconciles: *workers},
	})
	if err != nil {
		return err
	}
	rs := &reconciler.ReplicaSet{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Scheme: scheme}
	if err := rs.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if mgr.GetCache().WaitForCacheSync(ctx) {
			fmt.Println("running")
		}
		return nil
	})); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
