// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures Wherry against controller-runtime v0.25.1, side by
// side in one process and one run, and prints a table of ratios.
//
//	bench [-only REGEXP] [-rounds N] [-json FILE] [-chart FILE] [-readme FILE]
//	bench -from FILE [-chart FILE] [-readme FILE]
//
// A row runs the same work on both libraries in turns, so that a machine whose
// speed drifts slows both alike. Figures of time are process CPU time (user and
// system, garbage collection included), the median of the rounds; they are
// noisy and marked "timed". Allocations, bytes and sizes are exact.
package main
