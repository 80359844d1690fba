// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

const serviceAccountWorkers = 2

// startControllers starts the controllers that run beside the server, on the informers it has anyway. They end
// before the server does.
func (s *Server) startControllers(_ context.Context, c *app.Config) error {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.TODO()))
	var running sync.WaitGroup
	s.before = append(s.before, func() { cancel(); running.Wait() })
	cp := &c.KubeAPIs.ControlPlane
	client, err := kubernetes.NewForConfig(cp.Generic.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("make the controllers' client: %w", err)
	}
	if !s.parts.options.NoServiceAccounts {
		accounts, err := serviceaccount.NewServiceAccountsController(klog.TODO(),
			cp.VersionedInformers.Core().V1().ServiceAccounts(), cp.VersionedInformers.Core().V1().Namespaces(), client,
			serviceaccount.DefaultServiceAccountsControllerOptions())
		if err != nil {
			return fmt.Errorf("make the service account controller: %w", err)
		}
		running.Go(func() { accounts.Run(ctx, serviceAccountWorkers) })
	}
	cp.VersionedInformers.Start(ctx.Done())
	return nil
}
