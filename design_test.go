// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package wherry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest    = regexp.MustCompile("`(Test[A-Za-z0-9]+)`")
	declaredTest = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(\w+ \*testing\.T\)`)
)

// TestDesignsNameTests holds the tables of slips, of every module: a test that is renamed or removed must not leave a promise
// behind.
func TestDesignsNameTests(t *testing.T) {
	named, declared := map[string][]string{}, map[string]bool{} // names by DESIGN.md
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "bin"):
			return fs.SkipDir
		case d.Name() != "DESIGN.md" && !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if d.Name() == "DESIGN.md" {
			for _, m := range namedTest.FindAllSubmatch(text, -1) {
				named[path] = append(named[path], string(m[1]))
			}
			return nil
		}
		for _, m := range declaredTest.FindAllSubmatch(text, -1) {
			declared[string(m[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, names := range named {
		for _, name := range names {
			if !declared[name] {
				t.Errorf("%s names %s, and there is no such test", path, name)
			}
		}
	}
	for _, floor := range floors {
		if len(named[filepath.Join(floor, "DESIGN.md")]) == 0 {
			t.Errorf("%s/DESIGN.md names no test: this test no longer understands it", floor)
		}
	}
}
