// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/client/fake/conformance"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newFake makes a fake that is told of the Widget what a server reads from its definition.
func newFake(b fake.Behaviour) client.WithWatch {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{conformance.WidgetKind.GroupVersion()})
	mapper.Add(conformance.WidgetKind, meta.RESTScopeNamespace)
	builder := fake.NewClientBuilder().WithRESTMapper(mapper).WithStatusSubresource(conformance.NewWidget()).WithReturnManagedFields()
	return builder.WithServerBehaviour(b).Build()
}

// used notes which differences were met.
var used sync.Map

func allowed(name, line string) bool {
	ok := false
	for _, d := range conformance.Differences {
		if match, _ := path.Match(d.Case, name); match && strings.Contains(line, d.Field) {
			used.Store(d, true)
			ok = true
		}
	}
	return ok
}

// TestFakeAnswersLikeTheServer plays all cases with all of the server's behaviour on.
func TestFakeAnswersLikeTheServer(t *testing.T) {
	kept, err := conformance.Kept()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("cases", func(t *testing.T) {
		for _, c := range conformance.Cases() {
			t.Run(c.Name, func(t *testing.T) {
				want, ok := kept[c.Name]
				if !ok {
					t.Fatal("there are no answers of the server: write them down with `go test ./conformance -record` in the test module")
				}
				for _, line := range conformance.Diff(want, conformance.Play(t, newFake(fake.AllBehaviours), c)) {
					if !allowed(c.Name, line) {
						t.Error(line)
					}
				}
			})
		}
	})
	for _, d := range conformance.Differences {
		if _, ok := used.Load(d); !ok {
			t.Errorf("the difference %q %q is gone: take it off the list", d.Case, d.Field)
		}
	}
}

// TestEachCaseNeedsWhatItSays plays each case with only those behaviours on that it names.
func TestEachCaseNeedsWhatItSays(t *testing.T) {
	kept, err := conformance.Kept()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range conformance.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			for _, line := range conformance.Diff(kept[c.Name], conformance.Play(t, newFake(c.Needs), c)) {
				if !allowed(c.Name, line) {
					t.Error(line)
				}
			}
		})
	}
}

func TestCases(t *testing.T) {
	cases := conformance.Cases()
	names := map[string]bool{}
	for _, c := range cases {
		if names[c.Name] {
			t.Errorf("two cases are called %q", c.Name)
		}
		names[c.Name] = true
	}
	if len(cases) < 150 {
		t.Errorf("only %d cases", len(cases))
	}
	t.Logf("%d cases", len(cases))
}

// The fake's design says which case holds which slip of another fake.
func TestDesignNamesCasesThatExist(t *testing.T) {
	design, err := os.ReadFile("../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(design), "| slip |")
	if !ok {
		t.Fatal("DESIGN.md has no table of slips")
	}
	for _, name := range regexp.MustCompile("`([a-z A-Z]+/[^`]+)`").FindAllStringSubmatch(table, -1) {
		found := slices.ContainsFunc(conformance.Cases(), func(c conformance.Case) bool {
			match, _ := path.Match(name[1], c.Name)
			return match
		})
		if !found {
			t.Errorf("DESIGN.md names the case %q, which is not there", name[1])
		}
	}
}
