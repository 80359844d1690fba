// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package handler turns events into keys to reconcile.
//
// The usual handlers are EnqueueRequestForObject (the object itself),
// EnqueueRequestForOwner (who owns it) and EnqueueRequestsFromMapFunc
// (whatever a function says). Objects of the initial list and resyncs that
// changed nothing are queued with LowPriority, so that a change overtakes
// them.
package handler
