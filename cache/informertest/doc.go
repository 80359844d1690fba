// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package informertest is a cache for tests: its informers are fed by the test, by hand.
package informertest
