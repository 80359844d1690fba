// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package priorityqueue is the one queue of a controller.
//
// It holds each key at most once, hands the most urgent ready key to the next
// worker, keeps delayed keys until they are due, and never hands a key out
// while a worker still has it.
//
// # Order
//
// Ready keys are ordered by priority (higher first) and, within one priority,
// by arrival. Adding a key that is already queued keeps the higher priority
// and the earlier due time; a key whose priority is raised goes to the end of
// its new priority.
//
// Nothing starves: as long as the key that has been ready longest has waited
// for AgeAfter or more, one of every AgeShare hand-outs goes to it, whatever
// its priority. So a key waits at most AgeAfter and then AgeShare hand-outs
// for every key that became ready before it.
//
// # Life
//
// ShutDown ends the queue at once: what is queued is dropped and every Get
// returns. ShutDownWithDrain hands out what is ready and returns when all of
// it is done, when ShutDown is called, or when nothing has moved for
// DrainStall. Both may be called any number of times.
//
// A queue owns no goroutine; one timer serves all delayed keys.
package priorityqueue
