// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package fault keeps count of what user code did wrong without bringing the
// controller down: a predicate that panicked, a rate limiter that answered
// nonsense, a negative requeue.
//
// Every fault is counted in wherry_contained_faults_total; the first one of
// each kind in each controller is also logged, with the controller and the
// key, so that a fault that repeats for every object does not flood the log.
package fault
