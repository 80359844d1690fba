// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package resourcelock makes locks of client-go usable in our elections. Importing it links client-go's lock package, and so
// every API group of Kubernetes: a program that has no lock of its own does not need it.
package resourcelock
