// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package finalizer_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/finalizer"
)

type cleanUp struct{}

func (cleanUp) Finalize(_ context.Context, obj client.Object) (finalizer.Result, error) {
	fmt.Println("clean up after", obj.GetName())
	return finalizer.Result{}, nil
}

func ExampleNewFinalizers() {
	all := finalizer.NewFinalizers()
	if err := all.Register("example.com/clean-up", cleanUp{}); err != nil {
		fmt.Println(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	result, err := all.Finalize(context.Background(), pod)
	fmt.Println(pod.Finalizers, result.Updated, err)

	pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	result, err = all.Finalize(context.Background(), pod)
	fmt.Println(pod.Finalizers, result.Updated, err)
	// Output:
	// [example.com/clean-up] true <nil>
	// clean up after web
	// [] true <nil>
}
