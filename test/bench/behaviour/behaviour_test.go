// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
)

var update = flag.Bool("update", false, "keep what this library does, and write README.md anew")

const (
	outcomesFile = "outcomes.json"
	tableFile    = "README.md"
	fewest       = 120 // cases that the suite must have
)

// kept is what outcomes.json holds: case → library → notes.
type kept map[string]map[string]string

func readKept(t *testing.T) kept {
	t.Helper()
	b, err := os.ReadFile(outcomesFile)
	if os.IsNotExist(err) && *update {
		return kept{}
	}
	must(t, err)
	var k kept
	must(t, json.Unmarshal(b, &k))
	return k
}

// allCases are the cases by full name.
func allCases(t *testing.T) map[string]testCase {
	t.Helper()
	all := map[string]testCase{}
	for _, cases := range [][]testCase{clientCases(), fakeCases(), cacheCases(), controllerCases(), managerCases(), webhookCases()} {
		for _, c := range cases {
			name := c.area + ": " + c.name
			if _, twice := all[name]; twice {
				t.Fatalf("two cases are called %q", name)
			}
			all[name] = c
		}
	}
	return all
}

// TestCases runs every case on the library that this program was compiled with.
func TestCases(t *testing.T) {
	all, k, lib := allCases(t), readKept(t), library()
	known := len(scheme.Scheme.AllKnownTypes())
	var mu sync.Mutex
	seen := map[string]string{}
	t.Run(lib, func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				o := &outcome{}
				all[name].run(t, o)
				if len(o.notes) == 0 {
					t.Fatal("the case noted nothing")
				}
				mu.Lock()
				seen[name] = o.String()
				mu.Unlock()
				if want := k[name][lib]; !*update && o.String() != want {
					t.Errorf("%s does\n\t%s\nbut was seen to do\n\t%s", lib, o, want)
				}
			})
		}
	})
	if n := len(scheme.Scheme.AllKnownTypes()); n != known {
		t.Errorf("the cases added %d types to client-go's scheme, which the cases beside them read without a lock: give the case a scheme of its own", n-known)
	}
	if !*update || t.Failed() {
		return
	}
	for name, notes := range seen {
		if k[name] == nil {
			k[name] = map[string]string{}
		}
		k[name][lib] = notes
	}
	maps.DeleteFunc(k, func(name string, _ map[string]string) bool { _, ok := all[name]; return !ok })
	b, err := json.MarshalIndent(k, "", "\t")
	must(t, err)
	must(t, os.WriteFile(outcomesFile, append(b, '\n'), 0o666))
	must(t, os.WriteFile(tableFile, []byte(table(all, k)), 0o666))
}

// TestKept holds what is kept: whole, explained where the libraries differ, and
// shown in the table.
func TestKept(t *testing.T) {
	all, k := allCases(t), readKept(t)
	if len(all) < fewest {
		t.Errorf("%d cases, want at least %d", len(all), fewest)
	}
	for name, c := range all {
		theirs, ours := k[name]["controller-runtime"], k[name]["wherry"]
		switch {
		case theirs == "" || ours == "":
			t.Errorf("%s: not observed on both libraries; run make behaviour", name)
		case theirs != ours && c.why == "":
			t.Errorf("%s: the libraries differ, and the case does not say why\n\tcontroller-runtime: %s\n\twherry:             %s", name, theirs, ours)
		case theirs == ours && c.why != "":
			t.Errorf("%s: the libraries agree, but the case says why they differ", name)
		}
	}
	for name := range k {
		if _, ok := all[name]; !ok {
			t.Errorf("outcomes are kept of %q, which is no case", name)
		}
	}
	b, err := os.ReadFile(tableFile)
	must(t, err)
	if string(b) != table(all, k) {
		t.Errorf("%s does not show what is kept; run make behaviour", tableFile)
	}
}

// table is README.md.
func table(all map[string]testCase, k kept) string {
	var b strings.Builder
	differ := 0
	for _, c := range all {
		if c.why != "" {
			differ++
		}
	}
	fmt.Fprintf(&b, `# Behaviour of both libraries

Written by `+"`make behaviour`"+`; not to be edited. %d cases, written once and run on controller-runtime v0.25.1 and on Wherry.
They agree in %d; where they do not, the reason is given.
`, len(all), len(all)-differ)
	fmt.Fprintf(&b, "\n## Where they differ\n\n| case | controller-runtime v0.25.1 | Wherry | why |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if c := all[name]; c.why != "" {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(name), cell(k[name]["controller-runtime"]), cell(k[name]["wherry"]), cell(c.why))
		}
	}
	fmt.Fprintf(&b, "\n## Where they agree\n\n| case | both |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].why == "" {
			fmt.Fprintf(&b, "| %s | %s |\n", cell(name), cell(k[name]["wherry"]))
		}
	}
	return b.String()
}

func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(s)
}
