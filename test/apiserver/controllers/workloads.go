// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

const (
	// workers is how many objects of one kind a controller looks at at a time: kube-controller-manager's default.
	workers = 5
	// accountWorkers is how many namespaces get their service account at a time.
	accountWorkers = 2
)

func startServiceAccounts(s *Set) error {
	c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(s.ctx), s.shared.Core().V1().ServiceAccounts(),
		s.shared.Core().V1().Namespaces(), s.client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	s.running.Go(func() { c.Run(s.ctx, accountWorkers) })
	return nil
}

func startReplicaSets(s *Set) error {
	c := replicaset.NewReplicaSetController(s.ctx, s.shared.Apps().V1().ReplicaSets(), s.shared.Core().V1().Pods(),
		s.client, replicaset.BurstReplicas)
	s.running.Go(func() { c.Run(s.ctx, workers) })
	return nil
}

func startDeployments(s *Set) error {
	c, err := deployment.NewDeploymentController(s.ctx, s.shared.Apps().V1().Deployments(),
		s.shared.Apps().V1().ReplicaSets(), s.shared.Core().V1().Pods(), s.client)
	if err != nil {
		return err
	}
	s.running.Go(func() { c.Run(s.ctx, workers) })
	return nil
}

func startJobs(s *Set) error {
	// The two informers left out belong to a feature that is off.
	c, err := job.NewController(s.ctx, s.client, s.shared.Core().V1().Pods(), s.shared.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return err
	}
	s.running.Go(func() { c.Run(s.ctx, workers) })
	return nil
}
