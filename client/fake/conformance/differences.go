// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

// Difference is something that the fake answers otherwise than the server, and that stays so.
type Difference struct {
	// Case is the name of a case; a * stands for any one part of it.
	Case string
	// Field is a part of the line that Diff gives.
	Field string
	// Why says why it stays.
	Why string
}

// Differences is the whole list. A test fails if an entry is not needed any more.
var Differences = []Difference{
	{"create/*/with a resourceVersion", "error.", "controller-runtime's fake answers a BadRequest, and tests ask for it; the server's 500 without a reason is an accident"},
	{"create/metadata form", "", "tests make fixtures of metadata objects; a live client refuses to create one before it sends anything"},
	{"update/*/no such version", "error.", "a version that is no number is only another wrong version; the server's 500 is its storage failing to parse it"},
	{"status/of a kind without", "error.", "controller-runtime's fake names the object, and tests compare the text; ours adds why"},
	{"scale/of a kind without", "error.", "as for the status"},
	{"patch/*/JSON, test that fails", "error.causes", "the fake says which operation failed, which the server keeps to itself"},
	{"patch/*/JSON, remove what is not there", "error.causes", "as above"},
	{"patch/*/JSON, unknown operation", "error.causes", "as above"},
	{"apply/*/no owner", "error.", "controller-runtime's fake gives the server's answer; a live client of ours refuses before it sends anything"},
	{"list/field without index", "error.", "the fake stands for a cached client too, whose answer this is: the index is missing in the test's builder"},
}
