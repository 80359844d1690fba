// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// module is one Go module that is released.
type module struct {
	// folder is where it is in the repository, slash-separated.
	folder string
	// path is the path it is published under.
	path string
	// dropIn is set for the module that stands in for controller-runtime: its
	// versions follow that project's.
	dropIn bool
}

// root is the path of the root module.
const root = "github.com/wherry-dev/wherry"

// modules are the released ones. A module stands after all it requires: its
// checksums name theirs.
var modules = []module{
	{folder: ".", path: root},
	{folder: "test", path: root + "/test"},
	{folder: "test/apiserver", path: root + "/test/apiserver"},
	{folder: "compat", path: root + "/compat", dropIn: true},
	{folder: "examples/operator", path: root + "/examples/operator"},
}

// checkVersion says what is wrong with a release version.
func checkVersion(v string) error {
	if !semver.IsValid(v) || semver.Canonical(v) != v {
		return fmt.Errorf("%q is no version: give one such as v0.1.0", v)
	}
	return nil
}

// upstream is the controller-runtime minor version whose API this project has.
const upstream = "v0.25"

// version is the module's version in the release v. The drop-in module's is
// controller-runtime's minor version with a patch number made of ours, so that
// it rises as ours does and always lies above theirs: v0.1.0 is v0.25.100.
func (m module) version(v string) string {
	if !m.dropIn {
		return v
	}
	core, pre, _ := strings.Cut(strings.TrimPrefix(semver.Canonical(v), "v"), "-")
	patch := 0
	for part := range strings.SplitSeq(core, ".") {
		n, _ := strconv.Atoi(part) // digits: the version is valid
		patch = patch*100 + n
	}
	if pre != "" {
		pre = "-" + pre
	}
	return fmt.Sprintf("%s.%d%s", upstream, patch, pre)
}

// tag is the git tag of the module in the release v.
func (m module) tag(v string) string {
	if m.folder == "." {
		return m.version(v)
	}
	return m.folder + "/" + m.version(v)
}
