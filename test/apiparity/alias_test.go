// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"testing"
)

const (
	goldenFile = "controller-runtime-v0.25.1.txt"
	rootDir    = "../.."
	testDir    = "../../test"
	compatDir  = "../../compat"
)

// TestCompatIsUpToDate generates compat anew and compares.
func TestCompatIsUpToDate(t *testing.T) {
	golden, err := goldenLines(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	fresh := t.TempDir()
	missing, err := alias(golden, moduleIn(rootDir), testDir, compatDir, fresh)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range missing {
		t.Errorf("no package of ours has %s", m)
	}
	wrong, err := stale(compatDir, fresh)
	if err != nil {
		t.Fatal(err)
	}
	if len(wrong) > 0 {
		t.Errorf("compat is not what its generator makes of the packages behind it; run make compat. Files: %v", wrong)
	}
	files, err := generatedFiles(fresh)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 40 {
		t.Errorf("only %d packages were generated", len(files))
	}
}

// TestPaths holds that mapping there and back is the identity, for each
// package of the golden list.
func TestPaths(t *testing.T) {
	golden, err := goldenLines(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, rel := range slices.Sorted(maps.Keys(names(golden))) {
		path := upstreamPath(rel)
		if back := relative(path); back != rel {
			t.Errorf("%s is upstream's %s, which is our %s", rel, path, back)
		}
		if other, twice := seen[path]; twice {
			t.Errorf("%s and %s are both upstream's %s", rel, other, path)
		}
		seen[path] = rel
	}
	for rel, want := range map[string]string{
		".":                      upstream,
		"client":                 upstream + "/pkg/client",
		"client/log/zap":         upstream + "/pkg/log/zap",
		"client/conversion":      upstream + "/pkg/conversion",
		"webhook/conversion":     upstream + "/pkg/webhook/conversion",
		"controller/reconcile":   upstream + "/pkg/reconcile",
		"manager/metrics/server": upstream + "/pkg/metrics/server",
		"manager/signals":        upstream + "/pkg/manager/signals",
		"test/envtest/komega":    upstream + "/pkg/envtest/komega",
	} {
		if got := upstreamPath(rel); got != want {
			t.Errorf("upstreamPath(%q) = %q, want %q", rel, got, want)
		}
	}
}

// TestNames reads package-level names off every sort of line.
func TestNames(t *testing.T) {
	got := names([]string{
		"pkg ., func NewWebhookManagedBy[k8s.io/apimachinery/pkg/runtime.Object](manager.Manager, $0) *x.Y[$0]",
		"pkg ., method (Result) IsZero() bool",
		"pkg ., type Manager interface, Add(manager.Runnable) error",
		"pkg ., type Typed[comparable] struct",
		"pkg ., var Log github.com/go-logr/logr.Logger",
		"pkg cache, const AllNamespaces untyped string",
		"pkg cache, func New(x.Y) z",
	})
	want := map[string][]string{".": {"Log", "Manager", "NewWebhookManagedBy", "Typed"}, "cache": {"AllNamespaces", "New"}}
	if len(got) != len(want) {
		t.Errorf("packages %v", got)
	}
	for pkg, n := range want {
		if have := slices.Sorted(maps.Keys(got[pkg])); !slices.Equal(have, n) {
			t.Errorf("%s: %v, want %v", pkg, have, n)
		}
	}
}

// aliasExceptions are what an alias cannot do; the list of the packages behind
// has the others.
var aliasExceptions = exceptions{
	"pkg webhook/admission, func DefaulterRemoveUnknownOrOmitableFields(*webhook/admission.defaulterOptions)": "no other package can name its parameter's type: a variable holds the function",
}

// TestCompatAPI compares compat's API, under upstream's import paths, with
// upstream's.
func TestCompatAPI(t *testing.T) {
	golden, err := goldenLines(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	root = moduleIn(rootDir)
	have := map[string]bool{}
	for _, l := range features(compatDir, upstream) {
		have[l] = true
	}
	listed, err := readExceptions("exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for feature, reason := range aliasExceptions {
		listed[feature] = reason
	}
	var missing []string
	for _, l := range golden {
		if !have[l] {
			missing = append(missing, l)
		}
	}
	unexpected, stale := listed.judge(missing)
	for _, l := range unexpected {
		t.Errorf("missing: %s", l)
	}
	for _, l := range stale {
		t.Errorf("an exception, but not missing: %s", l)
	}
}
