// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Env names the environment variable that holds the path of a ready program.
// Where it is set nothing is looked for and nothing is built.
const Env = "WHERRY_APISERVER"

// self is the module this package is part of; the program's source lies beside
// it, in the folder apiserver.
const self = "github.com/wherry-dev/wherry/test"

// buildCommand is what to run ahead of tests where a build would not fit into
// their time.
const buildCommand = "go run " + self + "/envtest/build"

// Find returns the path of the API server program: the one that Env names, or
// else the one built from the source beside this module, which it builds or
// refreshes in the user's cache folder. Builds are told to progress, and happen
// under a lock: of several processes that need one, one builds and the others
// wait. A first build takes minutes; ctx stops it, or the wait for it.
func Find(ctx context.Context, progress io.Writer) (string, error) {
	if path := os.Getenv(Env); path != "" {
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("%s=%s: %w; name an existing program, or unset it to have one built", Env, path, err)
		}
		if info.IsDir() {
			return "", fmt.Errorf("%s=%s is a folder; name the program itself", Env, path)
		}
		return path, nil
	}
	source, err := sourceFolder(ctx)
	if err != nil {
		return "", err
	}
	target, err := cached(source)
	if err != nil {
		return "", err
	}
	if err := fits(target); err != nil {
		return "", err
	}
	return target, Build(ctx, target, progress)
}

// Build builds the program from the source beside this module into the file
// target, under the lock that Find waits for. It is quick where nothing
// changed since the last build.
func Build(ctx context.Context, target string, progress io.Writer) error {
	source, err := sourceFolder(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("make the folder for the API server program: %w", err)
	}
	unlock, err := lock(ctx, target+".lock", progress)
	if err != nil {
		return err
	}
	defer unlock()
	return compile(ctx, source, target, progress)
}

// sourceFolder finds the program's source as the go command sees it from the
// current folder.
func sourceFolder(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", fmt.Errorf("the API server program must be built, and there is no go command: install Go, or set %s to a program built elsewhere by %q", Env, buildCommand)
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", self)
	cmd.Env = goEnv()
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the API server's source: go list -m %s: %w: %s", self, err, strings.TrimSpace(complaint.String()))
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "apiserver")
	if _, err := os.Stat(filepath.Join(source, "go.mod")); err != nil {
		return "", fmt.Errorf("the API server's source is not beside %s: set %s to a program built from a checkout", self, Env)
	}
	return source, nil
}

// cached is where the program built from source is kept between runs.
func cached(source string) (string, error) {
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder for the API server program: %w; set %s instead", err, Env)
	}
	sum := sha256.Sum256([]byte(source))
	name := "apiserver"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(folder, "wherry", hex.EncodeToString(sum[:6]), name), nil
}

// goEnv is the environment for the go command: the caller's, less what would
// build for another machine or another set of modules.
func goEnv() []string {
	env := make([]string, 0, len(os.Environ())+1)
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "GOFLAGS", "GOOS", "GOARCH", "GOWORK":
		default:
			env = append(env, kv)
		}
	}
	return append(env, "GOWORK=off")
}
