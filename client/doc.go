// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package client talks to an API server: it reads and writes objects in three forms (Go types, unstructured maps, and
// metadata alone), can send reads to a cache, and lets gates hear of every write.
//
// [New] makes a client that reads and writes live. To read from a cache, pass a started one as CacheOptions.Reader; a
// manager's client is made so.
//
// # Options
//
// Options are applied in one order, the same for every verb; what comes later wins:
//
//  1. the Raw field of an options struct, as the base of what is sent;
//  2. what a wrapped client or Options gives for all calls: field owner and field validation;
//  3. the options of the call, from left to right; selectors by label add up, all else replaces;
//  4. what a wrapped client forces: dry run, and the namespace of a namespaced client.
//
// # Words
//
// form (typed, unstructured, metadata): how an object is held in memory. kind: group, version and kind. resource: what
// serves a kind on the server. call: one request. gate: a hook that every write passes. layer: what a wrapped client adds.
package client
