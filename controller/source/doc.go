// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package source is where the events of a controller come from: objects of a
// kind in a cache (Kind), an informer (Informer), a Go channel (Channel), or
// any function (Func).
//
// A source is started with a context and a queue, delivers until the context
// ends, and then lets go of everything it held: its handler is taken from the
// informer and its goroutines end. The same source may be started again, and
// by several controllers at once.
//
// What a user's predicate, map function or handler does wrong is contained: a
// predicate that panics lets its event through, a handler that panics loses
// the event; both are counted and, once, logged.
package source
