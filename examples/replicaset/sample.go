// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

// sampleSet is the ReplicaSet that a first run starts with.
func sampleSet() *appsv1.ReplicaSet {
	labels := map[string]string{"app": "web"}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "web", Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.com/web:1"}}},
			},
		},
	}
}

// createSample creates the sample unless it is there, and says what to try.
func createSample(ctx context.Context, c client.Client) error {
	err := c.Create(ctx, sampleSet())
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create the sample ReplicaSet: %w", err)
	}
	fmt.Printf(`
The ReplicaSet default/web is there (%s), and this program keeps its pods. In another terminal:

  export KUBECONFIG=%s
  kubectl get replicasets,pods
  kubectl get pods --watch
  kubectl scale replicaset web --replicas=5
  kubectl delete pod -l app=web --wait=false    (each is replaced)
  kubectl label pod --overwrite -l app=web app=debug    (a webhook warns, and each is replaced)

No kubelet runs here: pods stay Pending. Ctrl-C stops the server and this program; the data stays.

`, outcome(err), os.Getenv("KUBECONFIG"))
	return nil
}

func outcome(err error) string {
	if err != nil {
		return "as you left it"
	}
	return "new, with 3 replicas"
}
