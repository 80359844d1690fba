// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance has no code: its test plays the cases of client/fake/conformance on the embedded API server.
package conformance
