// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package reconcile defines the contract between a controller and the code
// that brings one object's actual state closer to its desired state.
//
// A Reconciler is told a key, never an event: it reads the state itself, and
// must come to the same end however often it is called and whatever it missed.
// A key is never reconciled by two workers at once.
package reconcile
