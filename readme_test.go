// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package wherry_test

import (
	"os"
	"strings"
	"testing"
)

// shown are the parts of programs that the README shows: all from a line on.
var shown = []struct{ program, from string }{
	{"examples/greeter/main.go", "package main\n"},
	{"examples/herald/main.go", "func main() {\n"},
}

// TestReadmeShowsTheExamples keeps the README's operators the ones that compile.
func TestReadmeShowsTheExamples(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shown {
		program, err := os.ReadFile(s.program)
		if err != nil {
			t.Fatal(err)
		}
		_, body, found := strings.Cut(string(program), "\n"+s.from)
		if !found {
			t.Fatalf("%s has no line %q", s.program, s.from)
		}
		if !strings.Contains(string(readme), "```go\n"+s.from+body+"```\n") {
			t.Errorf("README.md does not show %s as it is, from %q on", s.program, s.from)
		}
	}
}
