// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package wherry_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// exampled are the folders whose packages show everything they export.
var exampled = []string{"client", "controller", "cache"}

// unexampled are packages below those that programs do not call: the cases that the fake client's tests and the server's
// share, what a cache forwards, and what the controller's own packages tell one another.
var unexampled = []string{"client/fake/conformance", "cache/cacheapi", "controller/fault"}

// inward are names that only the controller's own packages have a use for.
var inward = []string{
	"controller/handler.Inline", "controller/handler.Prepare", "controller/handler.Validate",
	"controller/predicate.Inline", "controller/priorityqueue.Trace", "controller/source.StartRun",
}

// TestEveryConstructorHasAnExample lists what has no example with checked output: exported functions, types of options, and
// methods of builders that give the builder back.
func TestEveryConstructorHasAnExample(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		if !withinAny(p.rel(), exampled) || withinAny(p.rel(), unexampled) {
			continue
		}
		set := token.NewFileSet()
		var files, tests []*ast.File
		paths, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(path, "_test.go") {
				tests = append(tests, file)
			} else {
				files = append(files, file)
			}
		}
		shown := shownBy(tests)
		for _, name := range exampleWorthy(files) {
			seen[p.rel()+"."+name] = true
			if !shown[name] && !slices.Contains(inward, p.rel()+"."+name) {
				t.Errorf("%s: %s has no example with checked output", p.rel(), name)
			}
		}
	}
	for _, name := range inward {
		if !seen[name] {
			t.Errorf("%s needs no example, and is not there either", name)
		}
	}
	// A walk that finds nothing would pass for ever.
	for _, name := range []string{"client.New", "client.ListOptions", "client/fake.ClientBuilder_WithScheme", "client/log/zap.Level", "client/config.GetConfigOrDie",
		"controller/builder.ControllerManagedBy", "controller/source.Kind", "cache.Options"} {
		if !seen[name] {
			t.Errorf("%s was not looked at", name)
		}
	}
}

// TestExampleWorthy keeps the rule itself honest.
func TestExampleWorthy(t *testing.T) {
	const source = `package p
func New() int
func inner()
type Options struct{}
type MatchOptions struct{}
type Plain struct{}
type hiddenOptions struct{}
type Builder struct{}
func (b *Builder) WithMore() *Builder
func (b *Builder) Build() int
func (b *Builder) with() *Builder
func (p *Plain) Same() *Plain
`
	const examples = `package p_test
func ExampleNew() {
	// Output: 1
}
func ExampleOptions_with() {
	// Output: 1
}
func ExampleMatchOptions() {
	println()
}
func ExamplePlain_Same() {
	// Unordered output: 1
}
`
	parse := func(text string) []*ast.File {
		f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		return []*ast.File{f}
	}
	want := []string{"Builder_WithMore", "MatchOptions", "New", "Options"}
	if got := exampleWorthy(parse(source)); !slices.Equal(got, want) {
		t.Errorf("worth an example: %v, want %v", got, want)
	}
	want = []string{"New", "Options", "Plain_Same"}
	if got := slices.Sorted(maps.Keys(shownBy(parse(examples)))); !slices.Equal(got, want) {
		t.Errorf("shown: %v, want %v", got, want)
	}
}

// shownBy names what examples with checked output are of.
func shownBy(tests []*ast.File) map[string]bool {
	shown := map[string]bool{}
	for _, example := range doc.Examples(tests...) {
		if example.Output == "" {
			continue
		}
		name, rest, _ := strings.Cut(example.Name, "_")
		if method, _, _ := strings.Cut(rest, "_"); ast.IsExported(method) {
			name += "_" + method // a suffix that is no method begins with a small letter
		}
		shown[name] = true
	}
	return shown
}

// exampleWorthy names what a package exports that must have an example, in order, as the names of examples spell it.
func exampleWorthy(files []*ast.File) []string {
	var names []string
	for _, file := range files {
		for _, declared := range file.Decls {
			switch d := declared.(type) {
			case *ast.FuncDecl:
				switch on := receiver(d); {
				case !d.Name.IsExported():
				case d.Recv == nil:
					names = append(names, d.Name.Name)
				case strings.HasSuffix(on, "Builder") && givesBack(d, on):
					names = append(names, on+"_"+d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() && strings.HasSuffix(s.Name.Name, "Options") {
						names = append(names, s.Name.Name)
					}
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// receiver is the type that a method is on, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	return named(f.Recv.List[0].Type)
}

// givesBack tells whether a method's one result is of a type, or a pointer to it.
func givesBack(f *ast.FuncDecl, typ string) bool {
	return f.Type.Results != nil && len(f.Type.Results.List) == 1 && named(f.Type.Results.List[0].Type) == typ
}

func named(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return named(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
