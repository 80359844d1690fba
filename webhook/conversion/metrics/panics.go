// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/wherry-dev/wherry/manager/metrics"
)

// WebhookPanics counts the panics of converters that were recovered. It has no labels.
var WebhookPanics = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "controller_runtime_conversion_webhook_panics_total",
	Help: "Panics of converters that were recovered",
}, nil)

// The counter is there, at zero, from the start of the process, so that an alert on its growth sees the first panic.
func init() {
	metrics.Registry.MustRegister(WebhookPanics)
	WebhookPanics.WithLabelValues()
}
