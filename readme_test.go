// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package wherry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pages are what people read; their Go snippets must be code that compiles.
func pages(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatalf("no page under docs: %v", err)
	}
	return append(docs, "README.md")
}

// snippets returns the Go blocks of a page.
func snippets(page string) (blocks []string) {
	for rest := page; ; {
		_, after, found := strings.Cut(rest, "\n```go\n")
		if !found {
			return blocks
		}
		block, left, _ := strings.Cut(after, "\n```")
		blocks, rest = append(blocks, block), left
	}
}

// flat is text without indentation and blank lines, so that a snippet is found
// wherever its code stands.
func flat(text string) string {
	var b strings.Builder
	b.WriteByte('\n')
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// sources is every Go file of every module, flat. Test data compiles in the
// tests that use it.
func sources(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "bin") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		b, err := os.ReadFile(path)
		all = append(all, flat(string(b)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSnippetsAreCode keeps what the pages show the code that compiles: each
// snippet stands in some Go file of the repository.
func TestSnippetsAreCode(t *testing.T) {
	code := sources(t)
	seen := 0
	for _, page := range pages(t) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range snippets(string(b)) {
			seen++
			found := false
			for _, c := range code {
				found = found || strings.Contains(c, flat(s))
			}
			if !found {
				t.Errorf("%s: no Go file has these lines:\n%s", page, s)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d snippets found: this test no longer understands the pages", seen)
	}
}

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

// TestLinksLead checks that the pages' links to files lead to some.
func TestLinksLead(t *testing.T) {
	seen := 0
	for _, page := range pages(t) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split(string(b), "](") {
			target, _, ok := strings.Cut(part, ")")
			if i == 0 || !ok || strings.Contains(target, "://") || strings.HasPrefix(target, "#") {
				continue
			}
			seen++
			target, _, _ = strings.Cut(target, "#")
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), target)); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d links found: this test no longer understands the pages", seen)
	}
}
