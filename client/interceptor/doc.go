// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package interceptor puts functions in the place of single verbs of a client, as tests do to make one call fail.
package interceptor
