// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package server serves the metrics of this process, and whatever else an operator wants to show beside them, over HTTP or
// HTTPS.
package server
