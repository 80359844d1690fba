// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package leaderelection lets one of several candidates lead, and lets a leader that may have lost its lease write no more.
//
// A [Lock] is the record that candidates contend for: a Lease, written the way the candidates of other libraries write it, so
// that both can take turns on one. An [Elector] campaigns for it and holds it; what it wins is a [Term]. A [Fence] sits in
// front of the connection to the API server and asks the term before each write is sent.
package leaderelection
