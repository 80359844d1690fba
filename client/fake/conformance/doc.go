// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance holds cases that are played on a client: on the fake one, and on a live one with a real API server
// behind it. The answers are written down, freed from what no two runs have in common, and compared field by field. Nobody
// writes down by hand what is right: the server tells.
//
// The server's answers are kept in testdata, so that the fake is held to them in the root module, in a second and without a
// server; the test module plays the cases on the embedded server and checks that the kept answers are still true. That is why
// the cases are a package and not a test: two modules need them. It lies in the fake client's folder because it is part of
// that test double: nothing but tests imports it.
//
// What is masked: UIDs and resourceVersions become numbers in the order of their appearance, so that it still shows whether
// two are equal; times become "time"; the resourceVersion and the continue token of a list, generated suffixes of names, the
// times in managedFields and the order that comes of them, and the server's storage keys and names of Go types in messages are taken out; an empty list is the
// same as none, and an error cause that is named twice the same as one; namespaces and cluster-wide names, which
// are made unique for each run, are put back to what the case calls them.
//
// [Differences] lists what the fake answers otherwise and why.
package conformance
