// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package event defines what a source tells its predicates and its handler:
// an object was created, updated or deleted, or something else happened.
//
// The objects in an event belong to the cache that told of them. They must not
// be changed; copy them first.
package event
