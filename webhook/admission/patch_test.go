// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	tests := map[string]struct{ original, before, after, want string }{
		"nothing":                       {`{"a":1}`, `{"a":1}`, `{"a":1}`, ``},
		"add":                           {`{}`, `{}`, `{"a":{"b":[1,"x",null,true]}}`, `add /a {"b":[1,"x",null,true]}`},
		"replace":                       {`{"a":1}`, `{"a":1}`, `{"a":"x"}`, `replace /a "x"`},
		"remove":                        {`{"a":1,"b":2}`, `{"a":1,"b":2}`, `{"b":2}`, `remove /a`},
		"null is a value":               {`{"a":1}`, `{"a":1}`, `{"a":null}`, `replace /a null`},
		"key to escape":                 {`{}`, `{}`, `{"a/b~c":1}`, `add /a~1b~0c 1`},
		"unknown stays":                 {`{"x":1,"a":1}`, `{"a":1}`, `{"a":2}`, `replace /a 2`},
		"unknown inside stays":          {`{"s":{"x":1,"a":1}}`, `{"s":{"a":1}}`, `{"s":{}}`, `remove /s/a`},
		"omitted by the caller":         {`{}`, `{"s":{}}`, `{"s":{}}`, ``},
		"omitted, then filled":          {`{}`, `{"s":{}}`, `{"s":{"a":1}}`, `add /s {"a":1}`},
		"omitted, then gone":            {`{}`, `{"s":{}}`, `{}`, ``},
		"zero by the caller":            {`{"n":0}`, `{}`, `{"n":3}`, `replace /n 3`},
		"zero by the caller and us":     {`{"n":0}`, `{}`, `{"n":0}`, ``},
		"null by the caller":            {`{"s":null}`, `{"s":{}}`, `{"s":{"a":1}}`, `replace /s {"a":1}`},
		"null by the caller stays":      {`{"s":null}`, `{"s":{}}`, `{"s":{}}`, ``},
		"number written otherwise":      {`{"n":1.50}`, `{"n":1.5}`, `{"n":1.5}`, ``},
		"number of equal value":         {`{"n":1e2}`, `{"n":1e2}`, `{"n":100.0}`, ``},
		"minus zero":                    {`{"n":-0}`, `{"n":-0}`, `{"n":0.0e7}`, ``},
		"large numbers":                 {`{"n":9007199254740993}`, `{"n":9007199254740993}`, `{"n":9007199254740992}`, `replace /n 9007199254740992`},
		"large number kept exact":       {`{}`, `{}`, `{"n":9223372036854775807}`, `add /n 9223372036854775807`},
		"exponent nobody can compute":   {`{"n":1e999999999999}`, `{"n":1e999999999999}`, `{"n":1e999999999998}`, `replace /n 1e999999999998`},
		"string written otherwise":      {`{"s":"<a>"}`, `{"s":"\u003ca\u003e"}`, `{"s":"\u003ca\u003e"}`, ``},
		"escaped key":                   {`{"\u003c":1}`, `{"<":1}`, `{"<":2}`, `replace /< 2`},
		"sidecar in front":              {`[{"name":"a","x":1}]`, `[{"name":"a"}]`, `[{"name":"p"},{"name":"a"}]`, `add /0 {"name":"p"}`},
		"sidecars around, item changed": {`[{"name":"a","x":1,"n":1}]`, `[{"name":"a","n":1}]`, `[{"name":"p"},{"name":"a","n":2},{"name":"q"}]`, `add /0 {"name":"p"}; replace /1/n 2; add /2 {"name":"q"}`},
		"named gone":                    {`[{"name":"a"},{"name":"b","x":1},{"name":"c"}]`, `[{"name":"a"},{"name":"b"},{"name":"c"}]`, `[{"name":"b"}]`, `remove /0; remove /1`},
		"named in another order":        {`[{"name":"a"},{"name":"b"}]`, `[{"name":"a"},{"name":"b"}]`, `[{"name":"b"},{"name":"a"}]`, `replace /0/name "b"; replace /1/name "a"`},
		"placed, added in front":        {`[1,2]`, `[1,2]`, `[0,1,2]`, `add /0 0`},
		"placed, removed inside":        {`[1,2,3,4]`, `[1,2,3,4]`, `[1,4]`, `remove /2; remove /1`},
		"placed, item changed":          {`[{"a":1,"x":1},{"a":2,"x":2}]`, `[{"a":1},{"a":2}]`, `[{"a":1},{"a":3}]`, `replace /1/a 3`},
		"placed, which one is unclear":  {`[{"a":1,"x":1}]`, `[{"a":1}]`, `[{"a":3},{"a":4}]`, `replace /0 {"a":3}; add /1 {"a":4}`},
		"other length than the type's":  {`[1,2]`, `[1]`, `[1,3]`, `replace  [1,3]`},
		"whole":                         {`1`, `1`, `"x"`, `replace  "x"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			operations := diff(parseValid([]byte(test.original)), parseValid([]byte(test.before)), parseValid([]byte(test.after)))
			var got []string
			for _, o := range operations {
				line := o.Operation + " " + o.Path
				if o.Operation != "remove" {
					value, err := json.Marshal(o.Value)
					if err != nil {
						t.Fatal(err)
					}
					line += " " + string(value)
				}
				got = append(got, line)
			}
			if g := strings.Join(got, "; "); g != test.want {
				t.Errorf("got  %s\nwant %s", g, test.want)
			}
		})
	}
}

func TestDiffOfNoJSON(t *testing.T) {
	for _, bad := range []string{"", "{", `{"a":1}x`, "nul", `{"a"`} {
		if _, err := diffTexts([]byte(`{}`), []byte(bad)); err == nil {
			t.Errorf("%q is no document", bad)
		}
		if _, err := diffTexts([]byte(bad), []byte(`{}`)); err == nil {
			t.Errorf("%q is no original", bad)
		}
	}
}

// checkDiff holds diff to its promise: applied to original, the operations give after.
func checkDiff(t *testing.T, original, after []byte) {
	t.Helper()
	operations, err := diffTexts(original, after)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range operations {
		if o.Path == "" { // the library that applies cannot replace the whole
			return
		}
	}
	got, err := apply(operations, original)
	if err != nil {
		t.Fatalf("%s\nto %s\n%v: %v", original, after, operations, err)
	}
	g, err := parse(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := parse(after)
	if err != nil {
		t.Fatal(err)
	}
	if !equal(g, 0, w, 0) {
		t.Fatalf("%s\nto %s\ngot %s\nby %v", original, after, got, operations)
	}
}

// FuzzDiff takes any two documents. Keys that come twice are left out: what they mean is up to each reader.
func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"a":[{"name":"x"},{"name":"y","n":1e2}]}`), []byte(`{"a":[{"name":"y","n":100},{"name":"z"}],"b":null}`))
	f.Add([]byte(`{"a":[1,2,3]}`), []byte(`{"a":[3,2,1,{"":"~/"}]}`))
	f.Add([]byte(`{"n":0.10}`), []byte(`{"n":-0.0001e3,"s":"\ud800\u0041"}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a) == 0 || len(b) == 0 || a[0] != '{' || b[0] != '{' || !json.Valid(a) || !json.Valid(b) {
			t.Skip("no two objects")
		}
		for _, text := range [][]byte{a, b} {
			if d, _ := parse(text); repeats(d) || strings.ContainsRune(string(text), '\ufffd') || strings.Contains(string(text), `\u`) {
				t.Skip("a reader may see something else")
			}
		}
		checkDiff(t, a, b)
	})
}

func repeats(d *document) bool {
	for n, is := range d.nodes {
		if is.kind != '{' {
			continue
		}
		seen := map[string]bool{}
		for c := d.first(n); c > 0; c = d.nodes[c].next {
			if seen[string(d.nodes[c].key)] {
				return true
			}
			seen[string(d.nodes[c].key)] = true
		}
	}
	return false
}

// TestDiffOfRandomDocuments makes pairs that are near each other, as a defaulter's are.
func TestDiffOfRandomDocuments(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		original := randomValue(random, 3)
		after := changed(random, original)
		a, _ := json.Marshal(map[string]any{"root": original})
		b, _ := json.Marshal(map[string]any{"root": after})
		checkDiff(t, a, b)
	}
}

func randomValue(r *rand.Rand, depth int) any {
	if depth == 0 {
		return []any{r.IntN(3), "s" + fmt.Sprint(r.IntN(3)), nil, true, 1.5}[r.IntN(5)]
	}
	switch r.IntN(4) {
	case 0:
		m := map[string]any{}
		for range r.IntN(2 * manyFields) {
			m["k"+fmt.Sprint(r.IntN(2*manyFields))] = randomValue(r, depth-1)
		}
		return m
	case 1:
		var l []any
		for i := range r.IntN(5) {
			l = append(l, map[string]any{"name": fmt.Sprint("n", i), "v": randomValue(r, depth-2+depth%2)})
		}
		return l
	case 2:
		l := []any{}
		for range r.IntN(5) {
			l = append(l, randomValue(r, depth-1))
		}
		return l
	default:
		return randomValue(r, 0)
	}
}

func changed(r *rand.Rand, v any) any {
	if r.IntN(12) == 0 {
		return randomValue(r, 2)
	}
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for k, old := range v {
			if r.IntN(8) > 0 {
				m[k] = changed(r, old)
			}
		}
		if r.IntN(4) == 0 {
			m["new/~"] = randomValue(r, 1)
		}
		return m
	case []any:
		l := []any{}
		for _, old := range v {
			if r.IntN(8) == 0 {
				l = append(l, map[string]any{"name": fmt.Sprint("new", len(l))})
			}
			if r.IntN(8) > 0 {
				l = append(l, changed(r, old))
			}
		}
		return l
	default:
		return v
	}
}
