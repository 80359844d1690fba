// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// tag commits the stage as a child of the current commit, outside every
// branch, and tags it once per module. All tags are set, or none.
func tag(ctx context.Context, repo, version string) error {
	if err := releasable(ctx, repo, version); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "wherry-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	s, err := newStage(ctx, repo, work, version)
	if err != nil {
		return err
	}
	if _, err := git(ctx, repo, "fetch", "--quiet", "--no-tags", s.dir, "HEAD"); err != nil {
		return err
	}
	tree, err := git(ctx, repo, "rev-parse", "FETCH_HEAD^{tree}")
	if err != nil {
		return err
	}
	commit, err := git(ctx, repo, "commit-tree", tree, "-p", "HEAD", "-m", "Release "+version+"\n\nThe modules require each other at their released versions.")
	if err != nil {
		return err
	}
	if err := setTags(ctx, repo, version, commit); err != nil {
		return err
	}
	fmt.Printf("tagged %s; publish it with\n\n\tgit push --atomic origin %s\n", commit, strings.Join(tags(version), " "))
	return nil
}

// setTags sets all tags in one transaction.
func setTags(ctx context.Context, repo, version, commit string) error {
	var lines strings.Builder
	for _, t := range tags(version) {
		fmt.Fprintf(&lines, "create refs/tags/%s %s\n", t, commit)
	}
	_, err := gitInput(ctx, repo, lines.String(), "update-ref", "--stdin")
	return err
}

func tags(version string) []string {
	all := make([]string, len(modules))
	for i, m := range modules {
		all[i] = m.tag(version)
	}
	return all
}

// releasable says what keeps repo from being released at version.
func releasable(ctx context.Context, repo, version string) error {
	if err := checkVersion(version); err != nil {
		return err
	}
	dirty, err := git(ctx, repo, "status", "--porcelain")
	if err != nil {
		return err
	}
	if dirty != "" {
		return fmt.Errorf("the working tree has changes that are not committed; a release is made of a commit:\n%s", dirty)
	}
	for _, t := range tags(version) {
		if _, err := git(ctx, repo, "rev-parse", "--quiet", "--verify", "refs/tags/"+t); err == nil {
			return fmt.Errorf("tag %s exists: a released version never changes; choose the next one", t)
		}
	}
	log, err := os.ReadFile(filepath.Join(repo, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	heading := "## " + strings.TrimPrefix(version, "v")
	for line := range strings.Lines(string(log)) {
		if strings.HasPrefix(strings.TrimSpace(line)+" ", heading+" ") { // a date may follow
			return nil
		}
	}
	return fmt.Errorf("CHANGELOG.md has no section %q: move what is under Unreleased there first", heading)
}
