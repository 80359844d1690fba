// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster puts together what a program needs to work with one cluster: a client that reads from a cache
// and sees its own writes, the cache, a mapper and event recorders. A manager has one; more can be added to it
// with Add.
package cluster
