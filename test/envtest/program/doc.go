// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package program finds the API server program that tests run against, and
// builds it where there is none yet. It needs Go and the module proxy, nothing
// else: no download of binaries, no etcd.
package program
