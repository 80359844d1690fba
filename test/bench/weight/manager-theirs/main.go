// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command manager-theirs is a manager with one controller on core/v1 alone: its
// size is what the framework costs.
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

type idle struct{ client.Client }

func (i idle) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, i.Get(ctx, req.NamespacedName, &corev1.ConfigMap{})
}

func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	fmt.Println(corev1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{Scheme: scheme})
	if err == nil {
		err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(idle{mgr.GetClient()})
	}
	if err == nil {
		err = mgr.Start(ctrl.SetupSignalHandler())
	}
	fmt.Println(err)
}
