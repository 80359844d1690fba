// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/interceptor"
)

// Let the second update of a test fail.
func ExampleNewClient() {
	updates := 0
	c := interceptor.NewClient(base{}, interceptor.Funcs{
		Update: func(_ context.Context, _ client.WithWatch, _ client.Object, _ ...client.UpdateOption) error {
			if updates++; updates == 2 {
				return errors.New("as the test wants it")
			}
			return nil
		},
	})
	fmt.Println(c.Update(context.Background(), &corev1.Pod{}))
	fmt.Println(c.Update(context.Background(), &corev1.Pod{}))
	// Output:
	// <nil>
	// as the test wants it
}
