// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package predicate decides which events reach a source's handler.
//
// A predicate judges the event's own object, before it is mapped to the
// object that will be reconciled. It saves reconciles, not memory: the cache
// holds what its selectors let in.
package predicate
