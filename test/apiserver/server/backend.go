// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

// startEtcd runs an etcd in this process, with its data in a folder of its own, and returns its address and how to end
// it. It is nil but in a build with the tag "etcd", which exists for comparisons.
var startEtcd func() (endpoint string, stop func(), err error)

// HasEtcd reports whether this build can run a server on etcd; see Options.Etcd.
func HasEtcd() bool { return startEtcd != nil }
