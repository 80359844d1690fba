// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"time"

	"github.com/wherry-dev/wherry/manager/config"
)

// Defaults for all controllers of a manager: manager.Options.Controller takes them.
func ExampleController() {
	c := config.Controller{
		MaxConcurrentReconciles: 4,
		ReconciliationTimeout:   time.Minute,
		GroupKindConcurrency:    map[string]int{"ReplicaSet.apps": 10},
	}
	fmt.Println(c.GroupKindConcurrency["ReplicaSet.apps"], c.ReconciliationTimeout)
	// Output: 10 1m0s
}
