// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package file is the storage of the embedded API server: one store per data folder, for every resource.
//
// A [Store] is an append-only, checksummed log with group commit, an ordered index in memory and enough history to
// serve watches and paged lists at a past revision. A [Storage] is k8s.io/apiserver's storage.Interface over a
// Store for one resource, and a [RESTOptionsGetter] hands a Storage to every registry of a kube-apiserver.
//
// One revision counter serves all resources: it starts at 1, grows by exactly one with each write and never goes
// back. Nothing is visible before it is durable (in the mode the store was opened in), and nothing acknowledged is
// lost. DESIGN.md beside this file draws the write path, names the invariants and tells where each is tested.
package file
