// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package zap makes the logger that most programs give to log.SetLogger: a logr.Logger on top of go.uber.org/zap that
// knows how to write Kubernetes objects.
//
// Without options it suits production: JSON lines on standard error, level info, a stack trace from error level on, at
// most a hundred equal lines a second and then every hundredth. [UseDevMode] turns it into something for human eyes:
// console lines, level debug, stack traces from warning level on, nothing left out.
//
// A line about an object names it (kind, API version, namespace, name) and does not contain it: objects are large, and
// some of them are secret. In development mode they are written in full.
//
// To let the user choose on the command line, bind an [Options] to flags and hand it over:
//
//	opts := zap.Options{Development: true}
//	opts.BindFlags(flag.CommandLine)
//	flag.Parse()
//	log.SetLogger(zap.New(zap.UseFlagOptions(&opts)))
package zap
