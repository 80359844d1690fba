// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package recorder writes events: notes about objects that kubectl describe shows.
//
// There are two APIs for them. [EventRecorder] writes those of events.k8s.io/v1; the recorders that
// [Provider.GetEventRecorderFor] gives write those of the older core/v1. A program's role needs the right to
// create and patch events in the group it uses.
//
// Recording never blocks and never fails: events wait in a bounded queue and are sent by one goroutine.
// Repeated events are counted in one, and an object that makes too many is cut off for a while.
package recorder
