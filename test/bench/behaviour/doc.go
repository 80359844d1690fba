// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package behaviour holds cases that run on controller-runtime v0.25.1 and on
// Wherry. They are written once, against controller-runtime's import paths, and
// compiled twice:
//
//	go test ./behaviour                              on controller-runtime
//	go test -mod=mod -modfile=ours.mod ./behaviour   on Wherry, by the module in compat
//
// where ours.mod is go.mod with one line more, which make writes:
//
//	replace sigs.k8s.io/controller-runtime => ../../compat
//
// A case notes what it observes. The notes of both libraries are kept in
// outcomes.json, and README.md shows them as a table. A test fails if a library
// does otherwise than is kept, if the two differ without a reason given in the
// case, or if a reason is given where they agree. make behaviour observes anew.
package behaviour
