// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParseExceptions(t *testing.T) {
	for name, c := range map[string]struct{ text, err string }{
		"good":                     {"# why\n\npkg a, func F()\n\tit is heavy\npkg b, func G()\n\tso is it\n", ""},
		"no reason":                {"pkg a, func F()\n", "without a reason"},
		"no reason for the first":  {"pkg a, func F()\npkg b, func G()\n\tit is heavy\n", "without a reason"},
		"a reason for nothing":     {"\tit is heavy\n", "without a feature"},
		"two reasons":              {"pkg a, func F()\n\tone\n\ttwo\n", "without a feature"},
		"listed twice":             {"pkg a, func F()\n\tone\npkg a, func F()\n\ttwo\n", "twice"},
		"nothing":                  {"", ""},
		"no newline after a line":  {"pkg a, func F()\n\tone", ""},
		"no newline, and no cause": {"pkg a, func F()", "without a reason"},
	} {
		_, err := parseExceptions(c.text)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %v, want %q", name, err, c.err)
		}
	}
}

func TestJudge(t *testing.T) {
	listed := exceptions{"pkg a, func F()": "heavy", "pkg b, func There()": "old"}
	missing := []string{"pkg a, func F()", "pkg a, func Lost()"}
	unexpected, stale := listed.judge(missing)
	if !slices.Equal(unexpected, []string{"pkg a, func Lost()"}) || !slices.Equal(stale, []string{"pkg b, func There()"}) {
		t.Errorf("unexpected %q, stale %q", unexpected, stale)
	}
}

// TestExceptionsAreOfTheList holds the list that is used to the golden list: without loading any package.
func TestExceptionsAreOfTheList(t *testing.T) {
	listed, err := readExceptions("exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	golden, err := goldenLines("controller-runtime-v0.25.1.txt")
	if err != nil {
		t.Fatal(err)
	}
	for feature := range listed {
		if !slices.Contains(golden, feature) {
			t.Errorf("not in the golden list: %s", feature)
		}
	}
	if len(listed) == 0 {
		t.Error("no exceptions read: this test no longer understands the file")
	}
}
