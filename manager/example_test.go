// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/manager"
	metricsserver "github.com/wherry-dev/wherry/manager/metrics/server"
)

// A manager starts what it was given, and stops it when its context ends.
func ExampleNew() {
	m, err := manager.New(&rest.Config{Host: "https://localhost:6443"}, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, // no metrics in this example
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		fmt.Println("started")
		cancel() // what a signal does, see package signals
		<-ctx.Done()
		fmt.Println("stopped")
		return nil
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Start(ctx))
	// Output:
	// started
	// stopped
	// <nil>
}
