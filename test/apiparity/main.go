// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

// Command apiparity compares the exported Go API of this project with that of
// sigs.k8s.io/controller-runtime, package by package, after mapping upstream's
// import paths onto this project's.
//
//	apiparity list -dir DIR MODULE     print MODULE's API, one feature a line
//	apiparity check GOLDEN DIR...      compare the modules in DIRs with a golden list
//	apiparity alias GOLDEN ROOT TEST OUT  write the alias module into OUT
//
// The first DIR of check is the root module; paths are printed relative to it.
// check fails on a missing feature that -exceptions does not list with a
// reason, and on a listed one that is not missing. ROOT and TEST of alias are
// the root module and the one that holds envtest.
//
// DIR is a folder inside a Go module that can resolve MODULE's packages. A
// feature is one exported const, var, func, type, method or struct field, with
// its full signature; paths are printed as this project's, so that a golden
// list made from upstream is directly comparable.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"golang.org/x/tools/go/packages"
)

const upstream = "sigs.k8s.io/controller-runtime"

// moved maps an upstream folder under pkg/ to its floor in this project. A
// folder that is not listed keeps its path.
var moved = map[string]string{
	"builder":        "controller/builder",
	"event":          "controller/event",
	"finalizer":      "controller/finalizer",
	"handler":        "controller/handler",
	"predicate":      "controller/predicate",
	"reconcile":      "controller/reconcile",
	"source":         "controller/source",
	"config":         "manager/config",
	"healthz":        "manager/healthz",
	"leaderelection": "manager/leaderelection",
	"metrics":        "manager/metrics",
	"certwatcher":    "webhook/certwatcher",
	"recorder":       "cluster/recorder",
	"log":            "client/log",
	"scheme":         "client/scheme",
	"conversion":     "client/conversion",
	"envtest":        "test/envtest",
}

// root is the module that paths are printed relative to.
var root string

// relative rewrites an import path of upstream into a path relative to this
// project's root module ("." for the root package).
func relative(p string) string {
	if p != upstream && !strings.HasPrefix(p, upstream+"/") {
		if p == root {
			return "."
		}
		return strings.TrimPrefix(p, root+"/")
	}
	if p == upstream {
		return "."
	}
	p = strings.TrimPrefix(p, upstream+"/pkg/")
	first, rest, found := strings.Cut(p, "/")
	if to, ok := moved[first]; ok {
		first = to
	}
	if found {
		return first + "/" + rest
	}
	return first
}

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	fs := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	dir := fs.String("dir", ".", "folder inside a Go module that resolves MODULE")
	most := fs.Int("most", 40, "how many missing features to print (0: all)")
	excepted := fs.String("exceptions", "", "file of the features that are missing on purpose, each with its reason")
	_ = fs.Parse(os.Args[2:])
	switch {
	case os.Args[1] == "list" && fs.NArg() == 1:
		root = fs.Arg(0)
		for _, l := range features(*dir, fs.Arg(0)) {
			fmt.Println(l)
		}
	case os.Args[1] == "check" && fs.NArg() >= 2:
		var have []string
		for i, d := range fs.Args()[1:] {
			module := moduleIn(d)
			if i == 0 {
				root = module
			}
			have = append(have, features(d, module)...)
		}
		listed, err := readExceptions(*excepted)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", *excepted, err)
			os.Exit(2)
		}
		if !check(have, fs.Arg(0), listed, *most) {
			os.Exit(1)
		}
	case os.Args[1] == "alias" && fs.NArg() == 4:
		if err := writeAliases(fs.Arg(0), fs.Arg(1), fs.Arg(2), fs.Arg(3)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		usage()
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: apiparity list -dir DIR MODULE | apiparity check [-exceptions FILE] [-most N] GOLDEN DIR... | apiparity alias GOLDEN ROOT TEST OUT")
	os.Exit(2)
}

// moduleIn is the path of the module whose go.mod lies in dir.
func moduleIn(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	for l := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(l, "module "); ok {
			return strings.TrimSpace(path)
		}
	}
	fmt.Fprintf(os.Stderr, "no module line in %s/go.mod\n", dir)
	os.Exit(2)
	return ""
}

// features lists the exported API of every package of module that is neither
// internal, a command, an example nor a test helper of upstream alone.
func features(dir, module string) []string {
	cfg := &packages.Config{
		Dir:  dir,
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps | packages.NeedSyntax | packages.NeedTypesInfo,
	}
	pattern := []string{module, module + "/..."}
	if module == upstream {
		pattern = []string{module, module + "/pkg/..."}
	}
	pkgs, err := packages.Load(cfg, pattern...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	public := publicNames(module, pkgs)
	seen := map[string]bool{}
	var out []string
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			fmt.Fprintf(os.Stderr, "%s: %v\n", p.PkgPath, p.Errors[0])
			continue
		}
		if p.Types == nil || p.Name == "main" || strings.Contains(p.PkgPath+"/", "/internal/") || strings.Contains(p.PkgPath, "/examples/") {
			continue
		}
		out = append(out, packageFeatures(printer{module: module, public: public}, p.Types)...)
	}
	sort.Strings(out)
	uniq := out[:0]
	for _, l := range out {
		if !seen[l] {
			seen[l] = true
			uniq = append(uniq, l)
		}
	}
	return uniq
}

func packageFeatures(p printer, pkg *types.Package) []string {
	prefix := "pkg " + relative(pkg.Path()) + ", "
	var out []string
	add := func(format string, args ...any) { out = append(out, prefix+fmt.Sprintf(format, args...)) }
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		switch o := obj.(type) {
		case *types.Const:
			add("const %s %s", name, p.str(o.Type()))
		case *types.Var:
			add("var %s %s", name, p.str(o.Type()))
		case *types.Func:
			add("func %s%s", name, p.signature(o.Type().(*types.Signature)))
		case *types.TypeName:
			p.typeFeatures(o, add)
		}
	}
	return out
}

// typeFeatures prints a type. An alias of one of the module's own types is
// printed as the type it stands for, so that it does not matter which package
// defines it and which one aliases it.
func (p printer) typeFeatures(o *types.TypeName, add func(string, ...any)) {
	name := o.Name()
	t := types.Unalias(o.Type())
	named, ok := t.(*types.Named)
	if !ok || named.Obj().Pkg() == nil || !p.own(named.Obj().Pkg()) {
		add("type %s = %s", name, p.str(t))
		return
	}
	if a, ok := o.Type().(*types.Alias); ok && handsOn(a, named) {
		named = named.Origin()
	}
	if named.TypeArgs().Len() > 0 {
		add("type %s = %s", name, p.str(t))
		return
	}
	params := p.typeParams(named.TypeParams())
	switch u := named.Underlying().(type) {
	case *types.Struct:
		add("type %s%s struct", name, params)
		for i := range u.NumFields() {
			if f := u.Field(i); f.Exported() {
				add("type %s%s struct, %s %s", name, params, f.Name(), p.str(f.Type()))
			}
		}
	case *types.Interface:
		add("type %s%s interface", name, params)
		for i := range u.NumMethods() {
			if m := u.Method(i); m.Exported() {
				add("type %s%s interface, %s%s", name, params, m.Name(), p.signature(m.Type().(*types.Signature)))
			}
		}
		return
	default:
		add("type %s%s %s", name, params, p.str(u))
	}
	set := types.NewMethodSet(types.NewPointer(named))
	for i := range set.Len() {
		m, ok := set.At(i).Obj().(*types.Func)
		if ok && m.Exported() && m.Pkg() != nil && p.own(m.Pkg()) {
			add("method (%s) %s%s", name, m.Name(), p.signature(set.At(i).Type().(*types.Signature)))
		}
	}
}

// handsOn reports whether a generic alias gives its own type parameters, in
// their order, to the type it stands for, so that both have the same API.
func handsOn(a *types.Alias, named *types.Named) bool {
	if a.TypeParams().Len() == 0 || a.TypeParams().Len() != named.TypeArgs().Len() {
		return false
	}
	for i := range a.TypeParams().Len() {
		if named.TypeArgs().At(i) != a.TypeParams().At(i) {
			return false
		}
	}
	return true
}

// printer prints types in one spelling whatever the names of parameters and
// type parameters, and whichever way aliases point.
type printer struct {
	module string
	// public names the types of internal packages as their public alias.
	public map[*types.TypeName]string
}

// publicNames finds, for every type that lives in an internal package, the
// first public package that hands it out under an alias.
func publicNames(module string, pkgs []*packages.Package) map[*types.TypeName]string {
	names := map[*types.TypeName]string{}
	for _, p := range pkgs {
		if p.Types == nil || strings.Contains(p.PkgPath+"/", "/internal/") {
			continue
		}
		for _, n := range p.Types.Scope().Names() {
			o, ok := p.Types.Scope().Lookup(n).(*types.TypeName)
			if !ok || !o.Exported() || !o.IsAlias() {
				continue
			}
			named, ok := types.Unalias(o.Type()).(*types.Named)
			if !ok || named.Obj().Pkg() == nil || !strings.Contains(named.Obj().Pkg().Path()+"/", "/internal/") || !strings.HasPrefix(named.Obj().Pkg().Path(), module) {
				continue
			}
			if _, taken := names[named.Obj()]; !taken {
				names[named.Obj()] = relative(p.PkgPath) + "." + n
			}
		}
	}
	return names
}

func (p printer) own(pkg *types.Package) bool {
	return pkg.Path() == p.module || strings.HasPrefix(pkg.Path(), p.module+"/") || pkg.Path() == root || strings.HasPrefix(pkg.Path(), root+"/")
}

// qualified names a package-level type. Types of cache/cacheapi are aliases of
// client's and cache's (or the other way round): one spelling serves both.
func (p printer) qualified(o *types.TypeName) string {
	if o.Pkg() == nil {
		return o.Name()
	}
	if !p.own(o.Pkg()) {
		return o.Pkg().Path() + "." + o.Name()
	}
	r := relative(o.Pkg().Path())
	if r == "cache/cacheapi" {
		switch o.Name() {
		case "Object", "IndexerFunc", "FieldIndexer":
			r = "client"
		default:
			r = "cache"
		}
	}
	if public, ok := p.public[o]; ok {
		return public
	}
	return r + "." + o.Name()
}

func (p printer) typeParams(tp *types.TypeParamList) string {
	if tp.Len() == 0 {
		return ""
	}
	var parts []string
	for i := range tp.Len() {
		parts = append(parts, p.str(tp.At(i).Constraint()))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (p printer) signature(s *types.Signature) string {
	in := p.tuple(s.Params(), s.Variadic())
	out := p.tuple(s.Results(), false)
	switch s.Results().Len() {
	case 0:
		out = ""
	case 1:
		out = " " + out
	default:
		out = " (" + out + ")"
	}
	return p.typeParams(s.TypeParams()) + "(" + in + ")" + out
}

func (p printer) tuple(t *types.Tuple, variadic bool) string {
	var parts []string
	for i := range t.Len() {
		s := p.str(t.At(i).Type())
		if variadic && i == t.Len()-1 {
			s = "..." + strings.TrimPrefix(s, "[]")
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func (p printer) str(t types.Type) string {
	switch t := t.(type) {
	case *types.Alias:
		return p.str(types.Unalias(t))
	case *types.Basic:
		return t.Name()
	case *types.Named:
		s := p.qualified(t.Obj())
		if a := t.TypeArgs(); a.Len() > 0 {
			var parts []string
			for i := range a.Len() {
				parts = append(parts, p.str(a.At(i)))
			}
			s += "[" + strings.Join(parts, ", ") + "]"
		}
		return s
	case *types.TypeParam:
		return fmt.Sprintf("$%d", t.Index())
	case *types.Pointer:
		return "*" + p.str(t.Elem())
	case *types.Slice:
		return "[]" + p.str(t.Elem())
	case *types.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), p.str(t.Elem()))
	case *types.Map:
		return "map[" + p.str(t.Key()) + "]" + p.str(t.Elem())
	case *types.Chan:
		return map[types.ChanDir]string{types.SendRecv: "chan ", types.SendOnly: "chan<- ", types.RecvOnly: "<-chan "}[t.Dir()] + p.str(t.Elem())
	case *types.Signature:
		return "func" + p.signature(t)
	case *types.Interface:
		return p.iface(t)
	case *types.Struct:
		var parts []string
		for i := range t.NumFields() {
			parts = append(parts, t.Field(i).Name()+" "+p.str(t.Field(i).Type()))
		}
		return "struct{" + strings.Join(parts, "; ") + "}"
	case *types.Union:
		var parts []string
		for i := range t.Len() {
			term := p.str(t.Term(i).Type())
			if t.Term(i).Tilde() {
				term = "~" + term
			}
			parts = append(parts, term)
		}
		return strings.Join(parts, " | ")
	}
	return t.String()
}

// iface prints an interface literal.
func (p printer) iface(t *types.Interface) string {
	if t.Empty() {
		return "any"
	}
	var parts []string
	for i := range t.NumEmbeddeds() {
		parts = append(parts, p.str(t.EmbeddedType(i)))
	}
	for i := range t.NumExplicitMethods() {
		m := t.ExplicitMethod(i)
		parts = append(parts, m.Name()+p.signature(m.Type().(*types.Signature)))
	}
	return "interface{" + strings.Join(parts, "; ") + "}"
}

// check prints, package by package, how much of golden is present, and what is
// missing and not excepted. It reports whether all is as it should be.
func check(have []string, golden string, listed exceptions, most int) bool {
	want, err := goldenLines(golden)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	has := make(map[string]bool, len(have))
	for _, l := range have {
		has[l] = true
	}
	total, present := map[string]int{}, map[string]int{}
	var missing []string
	for _, l := range want {
		pkg, _, _ := strings.Cut(strings.TrimPrefix(l, "pkg "), ",")
		total[pkg]++
		if has[l] {
			present[pkg]++
		} else {
			missing = append(missing, l)
		}
	}
	unexpected, stale := listed.judge(missing)
	tell("missing", unexpected, most)
	tell("listed as an exception, but not missing", stale, most)
	for _, n := range slices.Sorted(maps.Keys(total)) {
		fmt.Printf("%5d / %-5d %s\n", present[n], total[n], n)
	}
	fmt.Printf("api parity: %d of %d features (%.1f%%), %d of the others are exceptions with a reason\n",
		len(want)-len(missing), len(want), 100*float64(len(want)-len(missing))/float64(max(len(want), 1)), len(listed)-len(stale))
	return len(unexpected) == 0 && len(stale) == 0
}

// tell prints features, most of them at most; 0 means all.
func tell(what string, features []string, most int) {
	for i, l := range features {
		if most > 0 && i >= most {
			fmt.Printf("... and %d more %s\n", len(features)-most, what)
			return
		}
		fmt.Printf("%s: %s\n", what, l)
	}
}

// goldenLines reads the features of a golden list.
func goldenLines(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if l := sc.Text(); l != "" && !strings.HasPrefix(l, "#") {
			lines = append(lines, l)
		}
	}
	return lines, sc.Err()
}
