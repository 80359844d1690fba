// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	xmodule "golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// stage is a copy of the repository as it is released: a git repository of its
// own, and the zip file of each module.
type stage struct {
	dir     string
	version string
	zips    []string // beside modules
	sums    []string // go.sum lines of the modules staged so far
}

// newStage stages what git tracks, or would, in the working tree of repo into
// the folder dir, which must be empty.
func newStage(ctx context.Context, repo, dir, version string) (*stage, error) {
	if err := checkVersion(version); err != nil {
		return nil, err
	}
	s := &stage{dir: filepath.Join(dir, "tree"), version: version}
	if err := copyTree(ctx, repo, s.dir); err != nil {
		return nil, fmt.Errorf("stage the working tree: %w", err)
	}
	if err := stampServer(s.dir, version); err != nil {
		return nil, err
	}
	if _, err := git(ctx, s.dir, "init", "--quiet"); err != nil {
		return nil, err
	}
	for i, m := range modules {
		if err := s.add(ctx, m, filepath.Join(dir, fmt.Sprintf("%d.zip", i))); err != nil {
			return nil, fmt.Errorf("stage module %s: %w", m.path, err)
		}
	}
	return s, nil
}

// copyTree copies the files that git tracks or would track.
func copyTree(ctx context.Context, repo, dir string) error {
	out, err := git(ctx, repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		err := copyFile(filepath.Join(repo, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // deleted, and not yet committed
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// serverVersion is where test/envtest keeps the version of the API server it
// fetches: it cannot require that module, whose replacements would reach every
// importer.
const serverVersion = "test/envtest/program/version.go"

var serverVersionLine = regexp.MustCompile(`(?m)^const Version = "[^"]*"$`)

func stampServer(dir, version string) error {
	name := filepath.Join(dir, serverVersion)
	b, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("stamp the API server's version: %w", err)
	}
	if n := len(serverVersionLine.FindAll(b, -1)); n != 1 {
		return fmt.Errorf("stamp the API server's version: %s has %d lines of the form `const Version = \"…\"`, not one", serverVersion, n)
	}
	b = serverVersionLine.ReplaceAll(b, fmt.Appendf(nil, "const Version = %q", version))
	return os.WriteFile(name, b, 0o644)
}

// add rewrites the module's go.mod and go.sum, commits, and zips it as the go
// command would when it fetches the tag.
func (s *stage) add(ctx context.Context, m module, zipFile string) error {
	folder := filepath.Join(s.dir, filepath.FromSlash(m.folder))
	mod, err := s.rewriteMod(folder)
	if err != nil {
		return err
	}
	if err := s.rewriteSum(folder, mod); err != nil {
		return err
	}
	if _, err := git(ctx, s.dir, "add", "--all", "--force"); err != nil {
		return err
	}
	if _, err := git(ctx, s.dir, "commit", "--quiet", "--allow-empty", "--message", m.tag(s.version)); err != nil {
		return err
	}
	out, err := os.Create(zipFile)
	if err != nil {
		return err
	}
	defer out.Close()
	subdir := m.folder
	if subdir == "." {
		subdir = ""
	}
	id := xmodule.Version{Path: m.path, Version: m.version(s.version)}
	if err := zip.CreateFromVCS(out, id, s.dir, "HEAD", subdir); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	s.zips = append(s.zips, zipFile)
	return s.sum(id, zipFile, modfile.Format(mod.Syntax))
}

// rewriteMod settles every requirement of a module of ours and drops the path
// replacements.
func (s *stage) rewriteMod(folder string) (*modfile.File, error) {
	name := filepath.Join(folder, "go.mod")
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(name, b, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Clone(mod.Replace) {
		if r.New.Version != "" {
			continue
		}
		if err := mod.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	for _, m := range modules {
		if !slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == m.path }) {
			continue
		}
		if err := mod.AddRequire(m.path, m.version(s.version)); err != nil {
			return nil, err
		}
	}
	mod.Cleanup()
	return mod, os.WriteFile(name, modfile.Format(mod.Syntax), 0o644)
}

// rewriteSum adds the checksums of the modules of ours that mod requires.
func (s *stage) rewriteSum(folder string, mod *modfile.File) error {
	name := filepath.Join(folder, "go.sum")
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := slices.Collect(strings.Lines(string(b)))
	for _, line := range s.sums {
		path, _, _ := strings.Cut(line, " ")
		if slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == path }) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return os.WriteFile(name, []byte(strings.Join(lines, "")), 0o644)
}

// sum notes the two go.sum lines of a staged module.
func (s *stage) sum(id xmodule.Version, zipFile string, mod []byte) error {
	whole, err := dirhash.HashZip(zipFile, dirhash.Hash1)
	if err != nil {
		return err
	}
	only, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(mod)), nil
	})
	if err != nil {
		return err
	}
	s.sums = append(s.sums,
		fmt.Sprintf("%s %s %s\n", id.Path, id.Version, whole),
		fmt.Sprintf("%s %s/go.mod %s\n", id.Path, id.Version, only))
	return nil
}
