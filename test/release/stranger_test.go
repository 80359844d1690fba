// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stranger is somebody who has Go and a module proxy, and has never seen this
// repository.
type stranger struct {
	version string
	env     []string
}

// newStranger publishes the working tree to a throw-away proxy. The version is
// one of its own in each run, so that no run meets another's modules in the
// module cache, and what it leaves there is removed.
func newStranger(t *testing.T) *stranger {
	t.Helper()
	ctx := t.Context()
	repo, err := top(ctx)
	if err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	s := &stranger{version: fmt.Sprintf("v0.0.0-test.%d", time.Now().UnixNano())}
	if err := publish(ctx, repo, s.version, proxy); err != nil {
		t.Fatal(err)
	}
	// What the go command derives from the environment is asked before the
	// cache folder moves: the server is then built as on a fresh machine, but
	// out of compiled packages that are there.
	goenv := s.goEnv(t, "GOPROXY", "GOCACHE", "GOMODCACHE", "GOPATH", "GONOSUMDB")
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "WHERRY_APISERVER", "KUBEBUILDER_ASSETS", "USE_EXISTING_CLUSTER", "KUBECONFIG", "GOFLAGS", "GOWORK":
		default:
			s.env = append(s.env, kv)
		}
	}
	s.env = append(s.env,
		"GOPROXY=file://"+filepath.ToSlash(proxy)+","+goenv["GOPROXY"],
		"GONOSUMDB="+strings.TrimPrefix(goenv["GONOSUMDB"]+","+root, ","),
		"GOCACHE="+goenv["GOCACHE"], "GOMODCACHE="+goenv["GOMODCACHE"], "GOPATH="+goenv["GOPATH"],
		"XDG_CACHE_HOME="+t.TempDir(), "GOWORK=off", "GINKGO_NO_COLOR=TRUE")
	t.Cleanup(func() { s.forget(t, goenv["GOMODCACHE"]) })
	return s
}

func (s *stranger) goEnv(t *testing.T, names ...string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"env", "-json"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	var vars map[string]string
	if err := json.Unmarshal(out, &vars); err != nil {
		t.Fatal(err)
	}
	return vars
}

// forget removes the throw-away versions from the module cache.
func (s *stranger) forget(t *testing.T, cache string) {
	for _, m := range modules {
		version := m.version(s.version)
		folder := filepath.Join(cache, filepath.FromSlash(m.path)+"@"+version)
		_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				return os.Chmod(path, 0o755) // the module cache is read-only
			}
			return nil
		})
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
		left, err := filepath.Glob(filepath.Join(cache, "cache", "download", filepath.FromSlash(m.path), "@v", version+".*"))
		if err != nil {
			t.Error(err)
		}
		for _, f := range left {
			if err := os.Remove(f); err != nil {
				t.Error(err)
			}
		}
	}
}

// patience bounds each command: a first build of the API server takes minutes.
const patience = 20 * time.Minute

// run runs a command in dir and returns what it prints.
func (s *stranger) run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	t.Logf("in %s: %s", filepath.Base(dir), strings.Join(args, " "))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(s.env, "PWD="+dir)
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out.String())
	}
	t.Logf("%s: %v", args[1], time.Since(start).Round(100*time.Millisecond))
	return out.String()
}

// TestPublished uses the modules as somebody who knows only their names. One
// after the other: the first builds the API server, the second finds it built.
func TestPublished(t *testing.T) {
	s := newStranger(t)
	t.Run("MigrateByOneLine", s.migrate)
	t.Run("NewOperator", s.begin)
}

// migrate takes a project in kubebuilder's default shape, written for
// controller-runtime, and adds one line.
func (s *stranger) migrate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "memo")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "memo"))); err != nil {
		t.Fatal(err)
	}
	// As it stands it must be good for controller-runtime itself, or the rest
	// would prove nothing.
	s.run(t, dir, "go", "vet", "./...")

	const upstreamPath = "sigs.k8s.io/controller-runtime"
	dropIn := modules[3]
	line := fmt.Sprintf("\nreplace %s => %s %s\n", upstreamPath, dropIn.path, dropIn.version(s.version))
	mod, err := os.OpenFile(filepath.Join(dir, "go.mod"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mod.WriteString(line); err != nil {
		t.Fatal(err)
	}
	if err := mod.Close(); err != nil {
		t.Fatal(err)
	}
	s.run(t, dir, "go", "mod", "tidy")
	if used := s.run(t, dir, "go", "list", "-m", "-f", "{{.Replace.Path}}", upstreamPath); strings.TrimSpace(used) != dropIn.path {
		t.Fatalf("%s is replaced by %q", upstreamPath, used)
	}
	s.run(t, dir, "go", "vet", "./...")
	out := s.run(t, dir, "go", "test", "-timeout", "20m", "-count=1", "-v", "./...")
	for _, suite := range []string{"Controller Suite", "Webhook Suite"} {
		if !strings.Contains(out, suite) {
			t.Errorf("%s did not run", suite)
		}
	}
	if n := strings.Count(out, "3 Passed | 0 Failed | 0 Pending | 0 Skipped"); n != 2 {
		t.Errorf("%d of 2 suites passed all 3 specs:\n%s", n, out)
	}
}

// gonew is the version of golang.org/x/tools whose gonew copies the scaffold.
const gonew = "golang.org/x/tools/cmd/gonew@v0.47.0"

// begin starts an operator from the scaffold.
func (s *stranger) begin(t *testing.T) {
	dir := t.TempDir()
	scaffold := modules[4]
	s.run(t, dir, "go", "run", gonew, scaffold.path+"@"+s.version, "example.com/fleet/operator")
	dir = filepath.Join(dir, "operator")
	s.run(t, dir, "go", "vet", "./...")
	s.run(t, dir, "go", "test", "-timeout", "20m", "-count=1", "./...")
	s.run(t, dir, "go", "build", "./...")
}
