// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

// kubeController is the program that runs Kubernetes' own ReplicaSet
// controller; its lease and its field manager bear that name.
const kubeController = "kube-controller-manager"

// RefuseRival returns an error if the cluster's own ReplicaSet controller is
// alive: two controllers on the same ReplicaSets would fight over each pod. It
// asks the API server twice: who holds the controller manager's lease, and who
// wrote the statuses there are.
func RefuseRival(ctx context.Context, live client.Reader) error {
	var lease coordinationv1.Lease
	err := live.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: kubeController}, &lease)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look for a rival's lease: %w", err)
	}
	if err == nil && held(&lease, time.Now()) {
		return rival(fmt.Sprintf("%s holds the lease %s/%s", *lease.Spec.HolderIdentity, lease.Namespace, lease.Name))
	}
	var sets appsv1.ReplicaSetList
	if err := live.List(ctx, &sets); err != nil {
		return fmt.Errorf("look for a rival's statuses: %w", err)
	}
	for _, rs := range sets.Items {
		if slices.ContainsFunc(rs.ManagedFields, writtenByKube) {
			return rival(fmt.Sprintf("it wrote the status of %s/%s", rs.Namespace, rs.Name))
		}
	}
	return nil
}

func rival(proof string) error {
	return fmt.Errorf("this cluster runs its own ReplicaSet controller (%s): two of them would fight over every pod; "+
		"use a cluster without one, or --force if you know that it is stopped", proof)
}

// held reports whether the lease has a holder that renewed it in time.
func held(lease *coordinationv1.Lease, now time.Time) bool {
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil {
		return false
	}
	term := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	return now.Before(lease.Spec.RenewTime.Add(term))
}

func writtenByKube(f metav1.ManagedFieldsEntry) bool {
	return f.Manager == kubeController && f.Subresource == "status"
}
