// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Every exported function and every group of options of the three packages has an example whose output is checked.
func TestEveryConstructorHasAnExample(t *testing.T) {
	for _, folder := range []string{".", "apiutil", "interceptor"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		set := token.NewFileSet()
		var tests []*ast.File
		wanted := map[string]bool{}
		for _, name := range files {
			file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "_test.go") {
				tests = append(tests, file)
				continue
			}
			for _, declared := range file.Decls {
				for _, name := range exampleWorthy(declared) {
					wanted[name] = true
				}
			}
		}
		for _, example := range doc.Examples(tests...) {
			if name, _, _ := strings.Cut(example.Name, "_"); example.Output != "" {
				delete(wanted, name)
			}
		}
		for name := range wanted {
			t.Errorf("%s: %s has no example with checked output", folder, name)
		}
	}
}

// exampleWorthy names what a declaration exports that must have an example.
func exampleWorthy(declared ast.Decl) []string {
	switch d := declared.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.IsExported() {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && strings.HasSuffix(s.Name.Name, "Options") {
				names = append(names, s.Name.Name)
			}
		}
		return names
	}
	return nil
}
