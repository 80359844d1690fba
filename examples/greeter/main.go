// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command greeter answers every ConfigMap that has a name with a greeting. It is the first operator of the README, which shows it and its test
// whole.
package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/log/zap"
)

type greeter struct{ client.Client }

func (g *greeter) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cm corev1.ConfigMap
	if err := g.Get(ctx, req.NamespacedName, &cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // deleted: nothing left to do
	}
	want := "Hello, " + cm.Data["name"] + "!"
	if cm.Data["name"] == "" || cm.Data["greeting"] == want {
		return ctrl.Result{}, nil
	}
	before := cm.DeepCopy()
	cm.Data["greeting"] = want
	return ctrl.Result{}, g.Patch(ctx, &cm, client.MergeFrom(before))
}

func setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(&greeter{mgr.GetClient()})
}

func main() {
	ctrl.SetLogger(zap.New())
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	utilruntime.Must(err)
	utilruntime.Must(setup(mgr))
	utilruntime.Must(mgr.Start(ctrl.SetupSignalHandler()))
}
