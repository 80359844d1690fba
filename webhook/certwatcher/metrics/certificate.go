// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/wherry-dev/wherry/manager/metrics"
)

var (
	// ReadCertificateTotal counts the times that certificate and key files were read, by all watchers of the process.
	ReadCertificateTotal = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "certwatcher_read_certificate_total",
		Help: "Times that certificate files were read",
	})

	// ReadCertificateErrors counts those times that gave no usable certificate.
	ReadCertificateErrors = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "certwatcher_read_certificate_errors_total",
		Help: "Times that certificate files were read without a usable certificate",
	})
)

// Certificates may be read before any manager exists, and the counters are part of what the metrics endpoint has always shown.
func init() { metrics.Registry.MustRegister(ReadCertificateTotal, ReadCertificateErrors) }
