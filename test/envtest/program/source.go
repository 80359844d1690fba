// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	// self is the module this package is part of.
	self = "github.com/wherry-dev/wherry/test"
	// module holds the program's source.
	module = self + "/apiserver"
)

// source is where the program's source is.
type source struct {
	// folder is the module in the same working tree as this package; empty means
	// that the module is downloaded in this version.
	folder, version string
}

// here returns the source in the working tree this package was compiled from, or
// else the published one. A package in the module cache has no other module in
// its folder.
func here() source {
	_, file, _, _ := runtime.Caller(0) // test/envtest/program/source.go, or no path at all with -trimpath
	folder := filepath.Join(filepath.Dir(file), "..", "..", "apiserver")
	if _, err := os.Stat(filepath.Join(folder, "go.mod")); err != nil || !filepath.IsAbs(folder) {
		return source{version: Version}
	}
	return source{folder: folder}
}

// name is the folder's name in the cache: programs of several versions and
// working trees lie side by side.
func (s source) name() string {
	if s.folder == "" {
		return s.version
	}
	sum := sha256.Sum256([]byte(s.folder))
	return hex.EncodeToString(sum[:6])
}

// stamp changes when the program has to be built anew. A released version never
// changes; of a working tree it takes in each file's name, size and time, and the
// toolchain, but not their content: that would take longer than asking.
func (s source) stamp() (string, error) {
	if s.folder == "" {
		return s.version, nil
	}
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version())
	err := filepath.WalkDir(s.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(sum, path, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("look at the API server's source: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// fetch returns a folder to build in, and what removes it again. The folders of
// the module cache are for reading only, so a downloaded module is copied into
// the folder given.
func (s source) fetch(ctx context.Context, into string) (folder string, remove func(), err error) {
	if s.folder != "" {
		return s.folder, func() {}, nil
	}
	folder, err = os.MkdirTemp(into, "source-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for the API server's source: %w", err)
	}
	remove = func() { _ = os.RemoveAll(folder) } // what is left over only takes room
	downloaded, err := s.download(ctx, folder)
	if err == nil {
		err = os.CopyFS(folder, os.DirFS(downloaded))
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return folder, remove, nil
}

// download has the go command download the module, as the caller's environment
// says (GOPROXY, GONOSUMDB, GOFLAGS and so on), and returns its folder in the
// module cache. It runs in an empty folder, so that no go.mod has a say.
func (s source) download(ctx context.Context, empty string) (string, error) {
	at := module + "@" + s.version
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", at)
	cmd.Dir, cmd.Env = empty, append(without("GOWORK"), "GOWORK=off")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, failed := cmd.Output()
	var answer struct{ Dir, Error string }
	_ = json.Unmarshal(out, &answer) // without an answer there is a complaint
	if failed == nil && answer.Error == "" && answer.Dir != "" {
		return answer.Dir, nil
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("download the API server's source: %w", context.Cause(ctx))
	}
	why := strings.TrimSpace(answer.Error + "\n" + complaint.String())
	return "", fmt.Errorf("download the API server's source: go mod download %s: %w: %s; if this machine reaches no module proxy, build the program on one that does with %q and name it in %s", at, failed, why, BuildCommand, Env)
}

// without is the environment less these variables.
func without(names ...string) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(names, name) {
			env = append(env, kv)
		}
	}
	return env
}
