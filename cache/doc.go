// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps the objects of the kinds a program reads in memory, up to date by watch, and tells
// handlers what happens to them.
//
// A read of a kind that is not cached yet begins to cache it and waits until that is done, unless
// [Options.ReaderFailOnMissingInformer] says otherwise. Every other read is answered from memory. Reads of a
// client that has the cache as its CacheOptions.Reader show the client's own writes at once.
//
// Words used here: an entry is what the cache knows of one kind; it has one store for each set of namespaces;
// beside each store lies an overlay that holds what was written and has not come back by watch.
package cache
