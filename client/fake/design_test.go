// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The table of slips names tests; a test that is renamed or removed must not leave a promise behind.
func TestDesignNamesTestsThatExist(t *testing.T) {
	design, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(data)
	}
	names := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(string(design), -1)
	if len(names) < 8 {
		t.Fatalf("the table names %d tests only", len(names))
	}
	for _, name := range names {
		if !strings.Contains(code.String(), "func "+name[1]+"(t *testing.T)") {
			t.Errorf("DESIGN.md names %s, which is not there", name[1])
		}
	}
}
