// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package log is where every part of Wherry gets its logger from.
//
// A library cannot know, while its package variables are made, which logger the program will choose. So [Log] is a
// promise: loggers derived from it by name and values may be made at any time, by anybody, and begin to write once
// [SetLogger] has named the real one. Until then their lines are dropped. A program that still has not called SetLogger
// when a line is due 30 seconds after its start is told so once, on standard error.
//
// Inside a reconcile or a webhook call, ask [FromContext]: the logger found there carries the names of what is being
// worked on.
//
// The package imports nothing else of Wherry, so that everything else may import it. A ready-made logger on top of zap
// is in the zap folder beside this file.
package log
