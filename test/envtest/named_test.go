// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/wherry-dev/wherry/test/envtest/program"
)

// TestNamed takes the ways to name a program away one by one, from the first that
// counts to the last.
func TestNamed(t *testing.T) {
	for _, v := range []string{"TEST_ASSET_KUBE_APISERVER", envAssets} {
		t.Setenv(v, "")
	}
	check := func(path, folder, want string) {
		t.Helper()
		if got := named(apiServerName, path, folder); filepath.ToSlash(got.path) != want {
			t.Errorf("got %q by %q, want %q", got.path, got.by, want)
		}
	}
	check("", "", "")
	check("", "/folder", "/folder/kube-apiserver")
	t.Setenv(envAssets, "/assets")
	check("", "/folder", "/assets/kube-apiserver")
	t.Setenv("TEST_ASSET_KUBE_APISERVER", "/asset")
	check("", "/folder", "/asset")
	check("/field", "/folder", "/field")
}

// TestNamedButNotThere names a folder without programs: the embedded server
// takes their part, and one line of the log says so.
func TestNamedButNotThere(t *testing.T) {
	t.Setenv(program.Env, "")
	t.Setenv(envAssets, filepath.Join(t.TempDir(), "absent"))
	var said []string
	before := logger
	logger = funcr.New(func(_, line string) { said = append(said, line) }, funcr.Options{})
	defer func() { logger = before }()
	p := &ControlPlane{}
	p.GetAPIServer()
	p.etcd()
	if err := p.checkBinaries(); err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 || !strings.Contains(said[0], envAssets) || !strings.Contains(said[0], "embedded") {
		t.Errorf("logged %q", said)
	}
	if path, err := findBinary(etcdName, "", ""); path != "" || err != nil {
		t.Errorf("found %q, %v", path, err)
	}
	t.Setenv(envAssets, "")
	p.Etcd.Path = t.TempDir()
	if err := p.checkBinaries(); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("a folder for a program: %v", err)
	}
}
