// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package private_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wherry-dev/wherry/test/apiserver/private"
)

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := private.Dir(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "secret")
	for _, content := range []string{"first", "second"} {
		if err := private.WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := private.ReadFile(path); err != nil || string(got) != content {
			t.Fatalf("read %q, %v; want %q", got, err, content)
		}
	}
	for path, want := range map[string]fs.FileMode{path: 0o600, dir: 0o700, filepath.Dir(dir): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v; want %04o", path, info.Mode().Perm(), err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d entries are left, %v; want the file alone", len(entries), err)
	}
}

func TestReadFileRefuses(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := private.WriteFile(target, []byte("x")); err != nil {
		t.Fatal(err)
	}
	link, open, folder := filepath.Join(dir, "link"), filepath.Join(dir, "open"), filepath.Join(dir, "folder")
	if err := errors.Join(os.Symlink(target, link), os.WriteFile(open, nil, 0o644), os.Chmod(open, 0o644), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		link:   "symbolic links are not followed",
		open:   "chmod 600",
		folder: "not a plain file",
	} {
		_, err := private.ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want an error that names it and says %q", path, err, want)
		}
	}
	if _, err := private.ReadFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v; want fs.ErrNotExist", err)
	}
}

func TestWriteFileReplacesALinkInsteadOfFollowingIt(t *testing.T) {
	dir := t.TempDir()
	victim, link := filepath.Join(dir, "victim"), filepath.Join(dir, "kubeconfig")
	if err := errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, link)); err != nil {
		t.Fatal(err)
	}
	if err := private.WriteFile(link, []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(victim); string(got) != "precious" {
		t.Fatalf("the link's target now holds %q", got)
	}
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() {
		t.Fatalf("%v, %v; want a plain file in the link's place", info.Mode(), err)
	}
}

func TestDirRefuses(t *testing.T) {
	base := t.TempDir()
	file, open := filepath.Join(base, "file"), filepath.Join(base, "open")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{file: "not a directory", open: "chmod 700", filepath.Join(file, "below"): "cannot make the folder"}
	if os.Getuid() != 0 { // root may write anywhere
		closed := filepath.Join(base, "closed")
		if err := os.Mkdir(closed, 0o500); err != nil {
			t.Fatal(err)
		}
		cases[closed] = "cannot write to the folder"
	}
	for path, want := range cases {
		err := private.Dir(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want an error that names it and says %q", path, err, want)
		}
	}
}
