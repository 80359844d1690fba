// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/manager/metrics/server"

	"sigs.k8s.io/controller-runtime/internal/assigned"
)

func init() { assigned.Share(&DefaultBindAddress, &server.DefaultBindAddress) }

// NewServer returns a server, or nil without an error if o.BindAddress is "0".
func NewServer(o server.Options, config *rest.Config, httpClient *http.Client) (server.Server, error) {
	assigned.HandOver()
	return server.NewServer(o, config, httpClient)
}
