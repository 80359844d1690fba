// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/manager"

	"sigs.k8s.io/controller-runtime/internal/assigned"
)

// New makes a manager for the cluster that config reaches.
func New(config *rest.Config, options manager.Options) (manager.Manager, error) {
	assigned.HandOver()
	return manager.New(config, options)
}
