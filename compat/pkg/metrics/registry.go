// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/wherry-dev/wherry/manager/metrics"

	"sigs.k8s.io/controller-runtime/internal/assigned"
)

func init() { assigned.Share(&Registry, &metrics.Registry) }
