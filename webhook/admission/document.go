// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// manyFields is the size from which on an object's fields are looked up in a map.
const manyFields = 16

// A document is a JSON text and where its values lie in it. Values keep the text they were written in, so that nothing is
// rounded, and a document of any size costs two allocations.
type document struct {
	text  []byte
	nodes []node // nodes[0] is the whole; a node's children follow it
}

// A node is one value: kind is '{', '[', '"', 't', 'f', 'n' or '0' for a number.
type node struct {
	kind     byte
	key      []byte // in an object: the field's name, unescaped
	from, to int    // where the value lies in the text
	next     int    // the next sibling, 0 if there is none
	children int    // how many
}

// parse reads text, which it keeps.
func parse(text []byte) (*document, error) {
	if !json.Valid(text) {
		var whole json.RawMessage
		return nil, fmt.Errorf("not JSON: %w", json.Unmarshal(text, &whole))
	}
	return parseValid(text), nil
}

// parseValid is parse for a text that was read or written as JSON before.
func parseValid(text []byte) *document {
	// Each comma, brace and bracket begins at most one value: room for all, unless the text is denser than objects are.
	values := 1 + bytes.Count(text, []byte{','}) + bytes.Count(text, []byte{'{'}) + bytes.Count(text, []byte{'['})
	d := &document{text: text, nodes: make([]node, 0, min(values, 16+len(text)/8))}
	d.value(d.space(0), nil)
	return d
}

// space skips white space.
func (d *document) space(at int) int {
	for at < len(d.text) && (d.text[at] == ' ' || d.text[at] == '\n' || d.text[at] == '\t' || d.text[at] == '\r') {
		at++
	}
	return at
}

// value adds the value that begins at, and returns where it ends. The text is known to be valid.
func (d *document) value(at int, key []byte) int {
	self := len(d.nodes)
	d.nodes = append(d.nodes, node{kind: d.text[at], key: key, from: at})
	end := at
	switch c := d.text[at]; c {
	case '{', '[':
		end = d.children(self, at+1, c == '{')
	case '"':
		end = d.string(at)
	default:
		for end < len(d.text) && !strings.ContainsRune(" \n\t\r,]}", rune(d.text[end])) {
			end++
		}
		if c == '-' || c >= '0' && c <= '9' {
			d.nodes[self].kind = '0'
		}
	}
	d.nodes[self].to = end
	return end
}

func (d *document) children(parent, at int, named bool) (end int) {
	last := 0
	for {
		at = d.space(at)
		switch d.text[at] {
		case '}', ']':
			return at + 1
		case ',':
			at = d.space(at + 1)
		}
		var key []byte
		if named {
			keyEnd := d.string(at)
			key = d.text[at+1 : keyEnd-1]
			if bytes.IndexByte(key, '\\') >= 0 {
				key = []byte(unquote(d.text[at:keyEnd]))
			}
			at = d.space(d.space(keyEnd) + 1) // behind the colon
		}
		child := len(d.nodes)
		at = d.value(at, key)
		if last > 0 {
			d.nodes[last].next = child
		}
		last = child
		d.nodes[parent].children++
	}
}

// string returns the end of the string that begins at.
func (d *document) string(at int) int {
	for at++; d.text[at] != '"'; at++ {
		if d.text[at] == '\\' {
			at++
		}
	}
	return at + 1
}

func unquote(quoted []byte) string {
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // the text is valid
	return s
}

func (d *document) raw(n int) []byte { return d.text[d.nodes[n].from:d.nodes[n].to] }

// first is the first child of n, 0 if there is none.
func (d *document) first(n int) int {
	if d.nodes[n].children == 0 {
		return 0
	}
	return n + 1
}

// items are the children of n.
func (d *document) items(n int) []int {
	items := make([]int, 0, d.nodes[n].children)
	for c := d.first(n); c > 0; c = d.nodes[c].next {
		items = append(items, c)
	}
	return items
}

// fields are the fields of one object, to be found by name.
type fields struct {
	doc   *document
	of    int
	byKey map[string]int // nil for an object with few
}

func (d *document) fields(n int) fields {
	f := fields{doc: d, of: n}
	if d.nodes[n].children >= manyFields {
		f.byKey = make(map[string]int, d.nodes[n].children)
		for c := d.first(n); c > 0; c = d.nodes[c].next {
			f.byKey[string(d.nodes[c].key)] = c
		}
	}
	return f
}

// find finds a field. Of two with one name the last counts.
func (f *fields) find(key []byte) (child int, ok bool) {
	if f.byKey != nil {
		child, ok = f.byKey[string(key)]
		return child, ok
	}
	for c := f.doc.first(f.of); c > 0; c = f.doc.nodes[c].next {
		if bytes.Equal(f.doc.nodes[c].key, key) {
			child, ok = c, true
		}
	}
	return child, ok
}

// equal says whether two values of two documents mean the same. Numbers are compared by value, exactly.
func equal(a *document, an int, b *document, bn int) bool {
	if a.nodes[an].kind != b.nodes[bn].kind {
		return false
	}
	switch a.nodes[an].kind {
	case '{':
		return equalObjects(a, an, b, bn)
	case '[':
		if a.nodes[an].children != b.nodes[bn].children {
			return false
		}
		ac, bc := a.first(an), b.first(bn)
		for ; ac > 0; ac, bc = a.nodes[ac].next, b.nodes[bc].next {
			if !equal(a, ac, b, bc) {
				return false
			}
		}
		return true
	case '"':
		ar, br := a.raw(an), b.raw(bn)
		return bytes.Equal(ar, br) || unquote(ar) == unquote(br)
	case '0':
		return equalNumbers(string(a.raw(an)), string(b.raw(bn)))
	}
	return true
}

func equalObjects(a *document, an int, b *document, bn int) bool {
	if bytes.Equal(a.raw(an), b.raw(bn)) {
		return true
	}
	inB, found := b.fields(bn), 0
	for ac := a.first(an); ac > 0; ac = a.nodes[ac].next {
		bc, ok := inB.find(a.nodes[ac].key)
		if !ok || !equal(a, ac, b, bc) {
			return false
		}
		found++
	}
	return found == b.nodes[bn].children
}

func equalNumbers(a, b string) bool {
	if a == b {
		return true
	}
	ad, ae, aok := decimal(a)
	bd, be, bok := decimal(b)
	return aok && bok && ad == bd && ae == be
}

// decimal gives a JSON number as its significant digits with their sign, and the power of ten they are multiplied by. It is not
// ok for an exponent that no number of a document can need.
func decimal(number string) (digits string, exponent int, ok bool) {
	sign := ""
	if number[0] == '-' {
		sign, number = "-", number[1:]
	}
	if e := strings.IndexAny(number, "eE"); e >= 0 {
		n, err := strconv.Atoi(number[e+1:])
		if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
			return "", 0, false
		}
		exponent, number = n, number[:e]
	}
	whole, fraction, _ := strings.Cut(number, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant)
	if significant == "" {
		return "0", 0, true
	}
	return sign + significant, exponent, true
}

// plain is a value as Go code expects it: map, slice, string, bool, nil, and float64 for a number, or json.Number for one that a
// float64 does not write back as it was.
func (d *document) plain(n int) any {
	switch is := d.nodes[n]; is.kind {
	case '{':
		fields := make(map[string]any, is.children)
		for c := d.first(n); c > 0; c = d.nodes[c].next {
			fields[string(d.nodes[c].key)] = d.plain(c)
		}
		return fields
	case '[':
		items := make([]any, 0, is.children)
		for c := d.first(n); c > 0; c = d.nodes[c].next {
			items = append(items, d.plain(c))
		}
		return items
	case '"':
		return unquote(d.raw(n))
	case '0':
		return plainNumber(string(d.raw(n)))
	case 't', 'f':
		return is.kind == 't'
	default:
		return nil
	}
}

func plainNumber(text string) any {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return json.Number(text)
	}
	if written, err := json.Marshal(number); err != nil || !equalNumbers(string(written), text) {
		return json.Number(text)
	}
	return number
}
