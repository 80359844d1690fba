// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package wherry_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// module is the one place in the code that spells our module path outside an
// import; go.mod is the other.
const module = "github.com/wherry-dev/wherry"

// floors are the floors of the house, lowest first. A package imports its own
// folder or a lower floor.
var floors = []string{"client", "cache", "cluster", "webhook", "manager", "controller"}

// leaves may be imported from every floor and import nothing of ours but
// client/log.
var leaves = []string{"manager/metrics", "manager/healthz"}

// doubles are test doubles and adapters: no floor and no import ban holds for
// them, and no other package of ours imports them.
var doubles = []string{
	"client/fake",
	"cache/informertest",
	"controller/controllertest",
	"manager/leaderelection/fake",
	"manager/leaderelection/resourcelock",
}

// banned are packages that link every API group of Kubernetes (about 10 MB)
// into each program that imports us.
var banned = []string{
	"k8s.io/client-go/kubernetes",
	"k8s.io/client-go/discovery",
	"k8s.io/client-go/restmapper",
	"k8s.io/client-go/dynamic/dynamicinformer",
	"k8s.io/client-go/applyconfigurations",
	"k8s.io/client-go/tools/events",
	"k8s.io/client-go/tools/leaderelection",
	"k8s.io/apiserver",
}

// models are packages that bring the models of OpenAPI along (2.2 MB). The floors above the client link them through
// client-go's tools/record, which signatures force on us; they import none themselves.
var models = []string{
	"k8s.io/apimachinery/pkg/util/strategicpatch",
	"k8s.io/kube-openapi/pkg/validation",
	"k8s.io/kube-openapi/pkg/util/proto",
	"github.com/google/gnostic-models",
}

// allowed are the modules the root module may require directly, and why.
var allowed = map[string]string{
	"k8s.io/client-go":                     "rest, informers, workqueue interfaces",
	"k8s.io/apimachinery":                  "objects, schemes, errors",
	"k8s.io/api":                           "the API types themselves",
	"github.com/go-logr/zapr":              "logr over zap",
	"go.uber.org/zap":                      "the logger behind client/log/zap",
	"github.com/prometheus/client_golang":  "metrics",
	"github.com/prometheus/client_model":   "in client_golang's graph; what a gathered metric is made of",
	"github.com/prometheus/common":         "in client_golang's graph; the formats of its samples",
	"golang.org/x/sync":                    "errgroup, singleflight",
	"github.com/go-logr/logr":              "forced by signatures",
	"gomodules.xyz/jsonpatch/v2":           "forced by signatures (admission.Response)",
	"k8s.io/utils":                         "in client-go's graph",
	"sigs.k8s.io/yaml":                     "in client-go's graph",
	"sigs.k8s.io/structured-merge-diff/v6": "in client-go's graph (client/fake)",
	"gopkg.in/evanphx/json-patch.v4":       "in client-go's graph",
	"k8s.io/klog/v2":                       "in client-go's graph",
	"k8s.io/kube-openapi":                  "in client-go's graph (client/fake)",
	"github.com/google/uuid":               "in client-go's graph",
	"github.com/google/go-cmp":             "in client-go's graph",
	"golang.org/x/time":                    "in client-go's graph; forced by workqueue's rate limiters",
	"go.uber.org/goleak":                   "tests only",
}

// pkg is what go list says of a package, as far as the rules need it.
type pkg struct {
	ImportPath string
	Name       string
	Dir        string
	Imports    []string
	Deps       []string
	GoFiles    []string
}

// rel is the package's path below the module, "" for the root package.
func (p pkg) rel() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

// house lists the packages of the root module. It is the one thing in the root
// module's tests that starts a process.
var house = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Dir,Imports,Deps,GoFiles", "./...")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := house()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if len(all) < 5 {
		t.Fatalf("go list found only %d packages: the rules below would hold vacuously", len(all))
	}
	return all
}

// within reports whether path is folder or below it.
func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

func withinAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return within(path, f) })
}

// floor is the index of the floor a package lives on; -1 for the root package
// and examples, which stand above all.
func floor(rel string) int {
	return slices.IndexFunc(floors, func(f string) bool { return within(rel, f) })
}

// importRule says what is wrong with a package of ours importing another of
// ours, or "" if nothing is.
func importRule(from, to string) string {
	switch {
	case withinAny(to, doubles) && !withinAny(from, doubles):
		return "is a test double: only tests import it"
	case withinAny(from, doubles):
		return ""
	case slices.Contains(leaves, from):
		if to != "client/log" {
			return "a leaf imports only client/log"
		}
		return ""
	case slices.Contains(leaves, to) || floor(from) == -1:
		return ""
	case floor(to) == -1:
		return "stands above every floor"
	case floor(to) > floor(from):
		return "is on a higher floor"
	}
	return ""
}

func TestImportsFall(t *testing.T) {
	for _, p := range packages(t) {
		for _, i := range p.Imports {
			if !within(i, module) {
				continue
			}
			to := strings.TrimPrefix(strings.TrimPrefix(i, module), "/")
			if wrong := importRule(p.rel(), to); wrong != "" {
				t.Errorf("%s imports %s, which %s", p.rel(), to, wrong)
			}
		}
	}
}

// TestImportRule keeps the rule itself honest: a rule that lets everything
// through would make TestImportsFall pass for ever.
func TestImportRule(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"cache", "client", true},
		{"client", "cache", false},
		{"manager", "controller", false},
		{"controller", "manager", true},
		{"client", "manager/metrics", true},
		{"manager/metrics", "client/log", true},
		{"manager/metrics", "client", false},
		{"manager", "manager/signals", true},
		{"controller/source", "cache/informertest", false},
		{"cache/informertest", "controller/controllertest", true},
		{"", "controller", true},
		{"examples/replicaset", "", true},
		{"cache", "", false},
	} {
		if got := importRule(c.from, c.to); (got == "") != c.ok {
			t.Errorf("%q imports %q: got %q, want allowed=%v", c.from, c.to, got, c.ok)
		}
	}
}

func TestNoTypedClientsets(t *testing.T) {
	for _, p := range packages(t) {
		if withinAny(p.rel(), doubles) {
			continue
		}
		for _, d := range p.Deps {
			if withinAny(d, banned) {
				t.Errorf("%s links %s: it brings every API group of Kubernetes into each program", p.ImportPath, d)
			}
		}
	}
}

func TestNoModels(t *testing.T) {
	clients := 0
	for _, p := range packages(t) {
		if withinAny(p.rel(), doubles) {
			continue
		}
		links := p.Imports
		if within(p.rel(), "client") {
			links, clients = p.Deps, clients+1
		}
		for _, d := range links {
			if withinAny(d, models) {
				t.Errorf("%s links %s: it brings the models of OpenAPI into each program", p.ImportPath, d)
			}
		}
	}
	if clients == 0 {
		t.Fatal("no package of the client was looked at")
	}
}

func TestDirectRequirements(t *testing.T) {
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(f) < 2 || !strings.HasPrefix(f[1], "v") || strings.Contains(line, "// indirect") {
			continue
		}
		seen++
		if _, ok := allowed[f[0]]; !ok {
			t.Errorf("go.mod requires %s, which is not on the list of allowed modules; a new one needs a written reason there", f[0])
		}
	}
	if seen == 0 {
		t.Fatal("no direct requirement found: this test no longer understands go.mod")
	}
	if strings.Contains(string(b), "\nreplace ") {
		t.Error("the root go.mod has a replace line: it would be ignored in every importer")
	}
}

// backRooms are names that say nothing of what a file or package provides.
var backRooms = []string{"util", "utils", "common", "helper", "helpers", "types", "internal", "misc"}

func TestRooms(t *testing.T) {
	for _, p := range packages(t) {
		if slices.Contains(backRooms, filepath.Base(p.ImportPath)) || strings.Contains(p.ImportPath, "/internal/") {
			t.Errorf("package %s: name it for what it provides", p.ImportPath)
		}
		for _, f := range p.GoFiles {
			if slices.Contains(backRooms, strings.TrimSuffix(f, ".go")) {
				t.Errorf("%s: %s: name a file for its noun", p.ImportPath, f)
			}
		}
		if p.Name != "main" && len(p.GoFiles) > 0 && !slices.Contains(p.GoFiles, "doc.go") {
			t.Errorf("package %s has no doc.go", p.ImportPath)
		}
	}
}

const spdx = "// SPDX-FileCopyrightText: The Wherry Authors\n// SPDX-License-Identifier: Apache-2.0\n"

// screen is the longest a function may be, in lines.
const screen = 70

// TestScreens holds every Go file of every module: two-line licence header,
// functions no longer than a screen (tests and generated files aside).
func TestScreens(t *testing.T) {
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasPrefix(d.Name(), "zz_generated") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(string(src), spdx) {
			t.Errorf("%s does not start with the two SPDX lines", path)
		}
		if strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if n := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1; n > screen {
				t.Errorf("%s: %s has %d lines; a function fits a screen (%d)", path, f.Name.Name, n, screen)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
