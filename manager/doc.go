// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager runs the parts of one operator process: it starts them in order, elects a leader if asked to, serves
// probes and metrics, and stops everything in order.
//
// The glossary: a runnable is a part that blocks in Start until its context ends. A stage is a moment in the life of the
// process; each runnable belongs to one. A group is the set of runnables of a stage. A term is a time of leadership.
package manager
