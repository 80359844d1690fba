// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// clone copies the working tree into a repository of its own, committed.
func clone(t *testing.T) string {
	t.Helper()
	ctx := t.Context()
	repo, err := top(ctx)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "clone")
	if err := copyTree(ctx, repo, dir); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"}, {"commit", "--quiet", "--message", "all"}} {
		if _, err := git(ctx, dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func changelog(t *testing.T, repo, heading string) {
	t.Helper()
	name := filepath.Join(repo, "CHANGELOG.md")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append(b, "\n"+heading+"\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTag(t *testing.T) {
	const version = "v1.98.7"
	ctx, repo := t.Context(), clone(t)
	if err := tag(ctx, repo, version); err == nil || !strings.Contains(err.Error(), "CHANGELOG.md") {
		t.Errorf("without a section in the changelog: got %v", err)
	}
	changelog(t, repo, "## 1.98.7 - 2026-11-30")
	if err := tag(ctx, repo, version); err == nil || !strings.Contains(err.Error(), "not committed") {
		t.Errorf("with a change that is not committed: got %v", err)
	}
	if _, err := git(ctx, repo, "commit", "--quiet", "--all", "--message", "changelog"); err != nil {
		t.Fatal(err)
	}
	if err := tag(ctx, repo, version); err != nil {
		t.Fatal(err)
	}
	head, err := git(ctx, repo, "rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{version, "test/" + version, "test/apiserver/" + version, "compat/v0.25.19807", "examples/operator/" + version} {
		parent, err := git(ctx, repo, "rev-parse", "refs/tags/"+name+"^")
		if err != nil || parent != head {
			t.Errorf("tag %s: parent %s, %v; want %s", name, parent, err, head)
		}
	}
	mod, err := git(ctx, repo, "show", version+":test/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(mod, root+" "+version) || strings.Contains(mod, "=> ../") {
		t.Errorf("the tagged test/go.mod does not require the root module at %s, or replaces it by a path:\n%s", version, mod)
	}
	if dirty, err := git(ctx, repo, "status", "--porcelain"); err != nil || dirty != "" {
		t.Errorf("tagging changed the working tree: %v\n%s", err, dirty)
	}
	if err := tag(ctx, repo, version); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a second time: got %v", err)
	}
}
