// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command client-theirs uses a client with core/v1 and apps/v1, and nothing else:
// its size is what the client costs.
package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	scheme := runtime.NewScheme()
	fmt.Println(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme))
	c, err := client.New(&rest.Config{}, client.Options{Scheme: scheme})
	if err == nil {
		err = c.List(context.Background(), &corev1.PodList{})
	}
	fmt.Println(err)
}
