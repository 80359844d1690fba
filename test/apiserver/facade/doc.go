// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package facade answers the few calls kube-apiserver makes straight to etcd, past the storage handed to it: the
// NodePort allocator reads and writes one key, componentstatuses probes one key, and the storage metrics ask for a
// status. It is a gRPC server on an in-memory connection over the same store as everything else, so nothing listens.
//
// The calls are a closed list. Anything else is refused and remembered (Unexpected), and a test fails on it: a new
// Kubernetes release that talks to etcd in one more place is found by that test, not by a user.
package facade
