// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command ours is a manager with one controller on Namespace that says when it reconciles first and ends when
// its input does: how long it takes from the start of the process is what an operator's restart costs, and what memory
// it has then is what an idle operator costs.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client/log/zap"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
)

type first struct{}

func (first) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	fmt.Println("reconciled")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the bench has looked
	os.Exit(0)
	return ctrl.Result{}, nil
}

func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	err := corev1.AddToScheme(scheme)
	var mgr ctrl.Manager
	if err == nil {
		mgr, err = ctrl.NewManager(&rest.Config{Host: os.Args[1]}, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	}
	if err == nil {
		err = ctrl.NewControllerManagedBy(mgr).For(&corev1.Namespace{}).Complete(first{})
	}
	if err == nil {
		err = mgr.Start(ctrl.SetupSignalHandler())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
