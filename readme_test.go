// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package wherry_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeShowsTheExample keeps the README's operator the one that compiles.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("examples/greeter/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(string(program), "\npackage main\n")
	if !found {
		t.Fatal("examples/greeter/main.go is no program")
	}
	if !strings.Contains(string(readme), "```go\npackage main\n"+body+"```\n") {
		t.Error("README.md does not show examples/greeter/main.go as it is, from its package line on")
	}
}
