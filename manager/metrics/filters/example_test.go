// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/manager/metrics/filters"
	"github.com/wherry-dev/wherry/manager/metrics/server"
)

// Metrics over HTTPS, for callers that the API server lets read them.
func ExampleWithAuthenticationAndAuthorization() {
	config := &rest.Config{Host: "https://localhost:6443"}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = server.NewServer(server.Options{
		SecureServing:  true,
		FilterProvider: filters.WithAuthenticationAndAuthorization,
	}, config, client)
	fmt.Println(err)
	// Output: <nil>
}
