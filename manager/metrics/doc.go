// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the registry that a manager's metrics server exposes, the metrics of work queues, and those of
// the REST client.
//
// Metric names, labels and buckets are part of the promise: dashboards and alerts name them, so they are only ever added to.
// Packages of higher floors register their own collectors in [Registry].
package metrics
