// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"net/http"

	"github.com/wherry-dev/wherry/manager/metrics/server"
)

// A server is made first and opens its port when it is started, as a manager does.
func ExampleNewServer() {
	s, err := server.NewServer(server.Options{BindAddress: "127.0.0.1:8443", SecureServing: true}, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.AddExtraHandler("/debug", http.NotFoundHandler()))
	fmt.Println(s.AddExtraHandler("/metrics", http.NotFoundHandler()))
	// Output:
	// <nil>
	// metrics server: "/metrics" is taken by the metrics themselves
}
