// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures Wherry against controller-runtime v0.25.1, side by
// side in one process and one run, and prints a table of ratios.
//
//	bench [-only REGEXP] [-rounds N] [-json FILE] [-chart FILE] [-readme FILE] [-keep]
//	bench -from FILE [-chart FILE] [-readme FILE]
//
// A row runs the same work on both libraries in turns, so that a machine whose
// speed drifts slows both alike. Figures of time are process CPU time (user and
// system, garbage collection included), the median of the rounds; they are
// noisy and marked "timed". Allocations, bytes and sizes are exact. Memory at its
// peak and requests are marked "varies": they are counted, and depend a little on
// timing. A row that takes minutes (build) runs only when -only names it, and
// -keep lets its last figures stand in the results of the other rows.
//
// The row "ReplicaSet" compares the example's controller with Kubernetes' own
// instead, each in a process of its own on a server of its own, in turns; its
// CPU time is that of the controller's process from the first set made to the
// last event sent, and needs Linux.
package main
