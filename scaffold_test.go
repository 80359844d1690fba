// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package wherry_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// scaffold is the operator that newcomers copy.
const scaffold = "examples/operator"

// What a newcomer is asked to look at: so many files in all, so many lines of them by hand, and so many lines in all.
const (
	scaffoldFiles  = 20
	scaffoldByHand = 900
	scaffoldLines  = 1450
)

// byTool are the scaffold's files that tools write: go mod tidy, controller-gen.
var byTool = []string{"go.sum", "zz_generated.deepcopy.go", "role.yaml", "manifests.yaml", "web.example.com_websites.yaml"}

// TestScaffoldStaysSmall holds the scaffold to its limits.
func TestScaffoldStaysSmall(t *testing.T) {
	files, byHand, lines := 0, 0, 0
	var seen []string
	walkScaffold(t, func(path string, content []byte) {
		n := bytes.Count(content, []byte("\n"))
		files, lines = files+1, lines+n
		if name := filepath.Base(path); slices.Contains(byTool, name) {
			seen = append(seen, name)
		} else {
			byHand += n
		}
	})
	t.Logf("%d files, %d lines by hand, %d lines in all", files, byHand, lines)
	if files > scaffoldFiles || byHand > scaffoldByHand || lines > scaffoldLines {
		t.Errorf("%s has %d files (%d allowed), %d lines by hand (%d), %d lines in all (%d)",
			scaffold, files, scaffoldFiles, byHand, scaffoldByHand, lines, scaffoldLines)
	}
	if len(seen) != len(byTool) {
		t.Errorf("files that tools write: %v, want %v", seen, byTool)
	}
}

// TestScaffoldCanBeCopied keeps the scaffold's own path where a copy changes it: gonew rewrites go.mod and imports, and make
// generate rewrites PROJECT; the README tells where to copy from.
func TestScaffoldCanBeCopied(t *testing.T) {
	imported := regexp.MustCompile(`(?m)^\t(\w+ )?"` + module + "/" + scaffold + `(/[\w/]+)?"$`)
	imports := 0
	walkScaffold(t, func(path string, content []byte) {
		switch name := filepath.Base(path); {
		case slices.Contains([]string{"go.mod", "PROJECT", "README.md"}, name):
			return
		case filepath.Ext(name) == ".go":
			imports += len(imported.FindAll(content, -1))
			content = imported.ReplaceAll(content, nil)
		}
		if bytes.Contains(content, []byte(scaffold)) {
			t.Errorf("%s names %s in a way that a copy would keep", path, scaffold)
		}
	})
	if imports == 0 {
		t.Error("the scaffold imports no package of its own: this test no longer understands it")
	}
}

// TestScaffoldManifestsFit holds what kustomize does not check: that every manifest is applied, and that the names which the
// certificate and the webhooks spell out are those that prefix and namespace make.
func TestScaffoldManifestsFit(t *testing.T) {
	var k struct {
		Namespace, NamePrefix string
		Resources             []string
		Patches               []struct{ Patch string }
	}
	parse := func(text string, into any) {
		t.Helper()
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	manifests := map[string]string{}
	walkScaffold(t, func(path string, content []byte) {
		if name, is := strings.CutPrefix(filepath.ToSlash(path), scaffold+"/config/"); is && !strings.HasPrefix(name, "samples/") {
			manifests[name] = string(content)
		}
	})
	parse(manifests["kustomization.yaml"], &k)
	delete(manifests, "kustomization.yaml")
	if want := slices.Sorted(maps.Keys(manifests)); !slices.Equal(slices.Sorted(slices.Values(k.Resources)), want) {
		t.Errorf("kustomization.yaml applies %v, there are %v", k.Resources, want)
	}
	var cert struct {
		Spec struct {
			IssuerRef struct{ Name string }
			DNSNames  []string
		}
	}
	text := manifests["manager/manager.yaml"]
	parse(text[strings.LastIndex(text, "\n---\n")+1:], &cert)
	host := k.NamePrefix + "webhook-service." + k.Namespace + ".svc"
	if !slices.Equal(cert.Spec.DNSNames, []string{host}) || cert.Spec.IssuerRef.Name != k.NamePrefix+"selfsigned-issuer" {
		t.Errorf("the certificate is %+v, want it for %s", cert, host)
	}
	if from := "inject-ca-from: " + k.Namespace + "/" + k.NamePrefix + "serving-cert}"; len(k.Patches) != 1 || !strings.Contains(k.Patches[0].Patch, from) {
		t.Errorf("patches %v, want one with %s", k.Patches, from)
	}
}

// walkScaffold calls visit with each file of the scaffold but what running it leaves behind.
func walkScaffold(t *testing.T, visit func(path string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir(scaffold, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".test") {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil {
			visit(path, content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
