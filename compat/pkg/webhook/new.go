// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"github.com/wherry-dev/wherry/webhook"

	"sigs.k8s.io/controller-runtime/internal/assigned"
)

func init() { assigned.Share(&DefaultPort, &webhook.DefaultPort) }

// NewServer returns a server.
func NewServer(o webhook.Options) webhook.Server {
	assigned.HandOver()
	return webhook.NewServer(o)
}
