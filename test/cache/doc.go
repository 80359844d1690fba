// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache holds the tests of the root module's cache and cluster that need a real API server.
package cache
