// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// pretend names a folder with source: this test binary then finds its program
// and ends, as one of several test processes does.
const pretend = "WHERRY_TEST_FIND"

func TestMain(m *testing.M) {
	if folder := os.Getenv(pretend); folder != "" {
		path, err := source{folder: folder}.find(context.Background(), os.Stderr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Print(path)
		return
	}
	os.Exit(m.Run())
}

// files are a module that takes the place of the API server's: it is built in a
// second.
func files(says string) map[string]string {
	return map[string]string{
		"go.mod":    "module " + module + "\n\ngo 1.26\n",
		"main.go":   "package main\n\nimport \"fmt\"\n\nvar stamped string\n\nfunc main() { fmt.Print(\"" + says + " \", stamped) }\n",
		"LDFLAGS":   "-X main.stamped=yes\n",
		"x_test.go": "package main\n",
	}
}

// write puts a module into a folder.
func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tree is source in a working tree, with a cache folder of the test's own.
func tree(t *testing.T, says string) source {
	t.Helper()
	s := source{folder: t.TempDir()}
	write(t, s.folder, files(says))
	return s
}

// alone gives a test a cache folder of its own and no time limit.
func alone(t *testing.T) (cache string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(out))) // it would move with the next one
	cache = t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv(Env, "")
	limit(t, 0)
	return cache
}

// limit has the code under test see another time limit of this test.
func limit(t *testing.T, d time.Duration) {
	t.Helper()
	f := flag.Lookup("test.timeout").Value
	before := f.String()
	if err := f.Set(d.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Set(before) }) // it was that before
}

// found finds the program and runs it.
func found(t *testing.T, s source) (path, says, progress string) {
	t.Helper()
	var told bytes.Buffer
	path, err := s.find(t.Context(), &told)
	if err != nil {
		t.Fatalf("%v; it told: %s", err, told.String())
	}
	out, err := exec.CommandContext(t.Context(), path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return path, string(out), told.String()
}

const building = "building the API server program"

func TestFindBuildsOnce(t *testing.T) {
	alone(t)
	s := tree(t, "one")
	path, says, told := found(t, s)
	if says != "one yes" || !strings.Contains(told, building) {
		t.Errorf("it says %q, and the build told %q", says, told)
	}
	t.Setenv("PATH", "") // what is built needs no Go
	begin := time.Now()
	again, err := s.find(t.Context(), os.Stderr)
	if took := time.Since(begin); err != nil || again != path || took > 20*time.Second { // nothing was waited for
		t.Errorf("second time: %s, %v, after %v", again, err, took)
	}
}

func TestWhatChangedIsBuiltAgain(t *testing.T) {
	alone(t)
	s := tree(t, "one")
	found(t, s)
	write(t, s.folder, map[string]string{"x_test.go": "package main // changed\n"})
	if _, says, told := found(t, s); says != "one yes" || told != "" {
		t.Errorf("after a change of a test it says %q, and the build told %q", says, told)
	}
	write(t, s.folder, files("other"))
	if _, says, _ := found(t, s); says != "other yes" {
		t.Errorf("after a change it says %q", says)
	}
}

// TestHalfBuilt finds what a build that was cut off leaves behind.
func TestHalfBuilt(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"a program that is cut off": func(path string) error { return os.Truncate(path, 1000) },
		"an empty program":          func(path string) error { return os.Truncate(path, 0) },
		"no program":                os.Remove,
		"no stamp":                  func(path string) error { return os.Remove(stampFile(path)) },
		"a stamp that is cut off":   func(path string) error { return os.Truncate(stampFile(path), 5) },
		"a program that was not put in place": func(path string) error {
			return errors.Join(os.Rename(path, path+".new"), os.Truncate(path+".new", 1000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t)
			s := tree(t, "whole")
			path, _, _ := found(t, s)
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			if _, says, told := found(t, s); says != "whole yes" || !strings.Contains(told, building) {
				t.Errorf("it says %q, and the build told %q", says, told)
			}
		})
	}
}

func TestVersionsSideBySide(t *testing.T) {
	alone(t)
	one, two := tree(t, "one"), tree(t, "two")
	first, _, _ := found(t, one)
	second, _, _ := found(t, two)
	if first == second {
		t.Errorf("both are %s", first)
	}
	if _, says, told := found(t, one); says != "one yes" || told != "" {
		t.Errorf("the first says %q, and was built again: %q", says, told)
	}
}

// TestOneBuildForAll has several test processes need the program at once.
func TestOneBuildForAll(t *testing.T) {
	alone(t)
	s := tree(t, "shared")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	told, paths := make([]bytes.Buffer, 5), make([]bytes.Buffer, 5)
	for i := range told {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), pretend+"="+s.folder)
		cmd.Stdout, cmd.Stderr = &paths[i], &told[i]
		all.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("%v: %s", err, &told[i])
			}
		})
	}
	all.Wait()
	builds, everything := 0, ""
	for i := range told {
		everything += told[i].String()
		builds += strings.Count(told[i].String(), building+"; the first time")
		if paths[i].String() != paths[0].String() || paths[i].Len() == 0 {
			t.Errorf("one process found %q, another %q", &paths[0], &paths[i])
		}
	}
	if builds != 1 {
		t.Errorf("%d builds, want 1: %s", builds, everything)
	}
}

// publish makes a module proxy of files with one version of the program's module
// and has the go command use it.
func publish(t *testing.T, version string, files map[string]string) {
	t.Helper()
	proxy := t.TempDir()
	folder := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for name, content := range files {
		w, err := z.Create(module + "@" + version + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, folder, map[string]string{
		version + ".info": `{"Version":"` + version + `"}`,
		version + ".mod":  files["go.mod"],
		version + ".zip":  packed.String(),
	})
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GONOSUMDB", module)
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOTOOLCHAIN", "local")
	// The flags of a caller who vendors; and else the test could not tidy up.
	t.Setenv("GOFLAGS", "-mod=vendor -modcacherw")
}

func TestPublished(t *testing.T) {
	cache := alone(t)
	publish(t, "v0.9.0", files("nine"))
	nine := source{version: "v0.9.0"}
	path, says, _ := found(t, nine)
	if says != "nine yes" || filepath.Dir(path) != filepath.Join(cache, "wherry", "v0.9.0") {
		t.Errorf("%s says %q", path, says)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "source-*")); len(left) > 0 {
		t.Errorf("left over: %s", left)
	}
	publish(t, "v0.10.0", files("ten"))
	if _, says, _ := found(t, source{version: "v0.10.0"}); says != "ten yes" {
		t.Errorf("the other version says %q", says)
	}
	t.Setenv("GOPROXY", "off")
	t.Setenv("PATH", "")
	if again, err := nine.find(t.Context(), os.Stderr); err != nil || again != path {
		t.Errorf("without proxy and Go: %s, %v", again, err)
	}
}

func TestFindErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(t *testing.T, cache string) source
		want []string
	}{
		{"no Go", func(t *testing.T, _ string) source {
			t.Setenv("PATH", t.TempDir())
			return tree(t, "x")
		}, []string{"no go command", "install Go", Env, BuildCommand}},
		{"a cache folder that cannot be written to", func(t *testing.T, cache string) source {
			write(t, cache, map[string]string{"wherry": ""}) // also root cannot write below a file
			return tree(t, "x")
		}, []string{"wherry", "writable", "XDG_CACHE_HOME", Env}},
		{"no cache folder", func(t *testing.T, _ string) source {
			t.Setenv("XDG_CACHE_HOME", "")
			t.Setenv("HOME", "")
			return tree(t, "x")
		}, []string{"no cache folder", Env}},
		{"source that does not compile", func(t *testing.T, _ string) source {
			s := tree(t, "x")
			write(t, s.folder, map[string]string{"main.go": "package main\n\nfunc main() { nonsense() }\n"})
			return s
		}, []string{"build the API server program", "nonsense"}},
		{"a version that is not published", func(t *testing.T, _ string) source {
			publish(t, "v0.9.0", files("nine"))
			return source{version: "v0.8.0"}
		}, []string{module + "@v0.8.0", BuildCommand, Env}},
		{"no proxy", func(t *testing.T, _ string) source {
			publish(t, "v0.9.0", files("nine"))
			t.Setenv("GOPROXY", "off")
			return source{version: "v0.9.0"}
		}, []string{"GOPROXY=off", BuildCommand, Env}},
		{"a time limit that is too near", func(t *testing.T, _ string) source {
			limit(t, longBuild-time.Minute)
			return tree(t, "x")
		}, []string{"7m0s", BuildCommand, "-timeout"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.set(t, alone(t))
			path, err := s.find(t.Context(), os.Stderr)
			if err == nil {
				t.Fatalf("found %s", path)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
		})
	}
}

func TestFindIsCancelled(t *testing.T) {
	alone(t)
	s := tree(t, "x")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := s.find(ctx, os.Stderr); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("error %v", err)
	}
	if _, says, _ := found(t, s); says != "x yes" {
		t.Errorf("afterwards it says %q", says)
	}
}

// TestTimeEnough builds in a test whose time limit is far enough, and in a
// program that has none.
func TestTimeEnough(t *testing.T) {
	for _, d := range []time.Duration{0, longBuild + time.Since(started) + time.Hour} {
		alone(t)
		limit(t, d)
		if _, says, _ := found(t, tree(t, "x")); says != "x yes" {
			t.Errorf("with a limit of %v it says %q", d, says)
		}
	}
}

// TestHere checks that this package knows the working tree it is part of.
func TestHere(t *testing.T) {
	s := here()
	if _, err := os.Stat(filepath.Join(s.folder, ldflagsFile)); err != nil {
		t.Errorf("source %+v: %v", s, err)
	}
}
