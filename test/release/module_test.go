// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	dropIn := module{folder: "compat", dropIn: true}
	for _, c := range []struct{ release, dropIn string }{
		{"v0.1.0", "v0.25.100"},
		{"v0.1.7", "v0.25.107"},
		{"v0.12.0", "v0.25.1200"},
		{"v1.0.0", "v0.25.10000"},
		{"v1.2.3-rc.1", "v0.25.10203-rc.1"},
	} {
		if got := dropIn.version(c.release); got != c.dropIn {
			t.Errorf("drop-in module in %s: got %s, want %s", c.release, got, c.dropIn)
		}
		if got := (module{folder: "test"}).tag(c.release); got != "test/"+c.release {
			t.Errorf("tag of test in %s: got %s", c.release, got)
		}
	}
}

func TestCheckVersion(t *testing.T) {
	for v, ok := range map[string]bool{
		"v0.1.0": true, "v1.0.0-rc.1": true,
		"0.1.0": false, "v1": false, "v1.2": false, "": false, "main": false,
	} {
		if err := checkVersion(v); (err == nil) != ok {
			t.Errorf("%q: got %v, want ok=%v", v, err, ok)
		}
	}
}

// TestPagesNameTheVersion keeps the one line that people paste into go.mod: it
// names the version of the drop-in module that goes with the next release.
func TestPagesNameTheVersion(t *testing.T) {
	repo, err := top(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(repo, serverVersion))
	if err != nil {
		t.Fatal(err)
	}
	next := strings.Split(serverVersionLine.FindString(string(source)), `"`)[1]
	want := module{dropIn: true}.version(next)
	for _, page := range []string{"README.md", "compat/README.md", "examples/operator/README.md"} {
		b, err := os.ReadFile(filepath.Join(repo, page))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(b), root+"/compat ")
		if !found || !strings.HasPrefix(rest, want+"\n") && !strings.HasPrefix(rest, want+"`") {
			t.Errorf("%s does not tell to replace controller-runtime by %s/compat %s", page, root, want)
		}
	}
}
