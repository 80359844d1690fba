// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package fake holds leader election locks in memory, for tests.
package fake
