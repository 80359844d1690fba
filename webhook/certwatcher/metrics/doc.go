// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts how often certificate files are read.
package metrics
