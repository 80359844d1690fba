// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
)

// diff gives the operations that do to original what was done to before to get after, three JSON documents. before is what a
// Go type keeps of original: where before and after agree, original stays as it is, whatever it holds. With before equal to
// original, the operations make after of original.
//
// They come in the order of after, those that remove behind the others of their object.
func diff(original, before, after *document) []jsonpatch.Operation {
	d := differ{original: original, before: before, after: after}
	d.values("", 0, 0, 0)
	return d.operations
}

// diffTexts is diff for two texts that anybody may have written.
func diffTexts(original, after []byte) ([]jsonpatch.Operation, error) {
	to, err := parse(after)
	if err != nil {
		return nil, fmt.Errorf("changed object: %w", err)
	}
	from, err := parse(original)
	if err != nil {
		return nil, fmt.Errorf("original object: %w", err)
	}
	return diff(from, from, to), nil
}

// differ walks three documents at once. In its methods o, b and a are nodes of original, before and after.
type differ struct {
	original, before, after *document
	operations              []jsonpatch.Operation
}

// values compares b with a. o is where the change goes.
func (d *differ) values(path string, o, b, a int) {
	if bytes.Equal(d.before.raw(b), d.after.raw(a)) { // both are written by one encoder, so most end here
		return
	}
	kind := d.before.nodes[b].kind
	if d.after.nodes[a].kind == kind && d.original.nodes[o].kind == kind {
		switch kind {
		case '{':
			d.objects(path, o, b, a)
			return
		case '[':
			if d.original.nodes[o].children == d.before.nodes[b].children {
				d.lists(path, o, b, a)
				return
			}
		}
	}
	d.whole(path, b, a)
}

// whole puts a in b's place if they differ.
func (d *differ) whole(path string, b, a int) {
	if !equal(d.before, b, d.after, a) {
		d.set("replace", path, a)
	}
}

func (d *differ) set(operation, path string, a int) {
	d.operations = append(d.operations, jsonpatch.NewOperation(operation, path, d.after.plain(a)))
}

func (d *differ) remove(path string) {
	d.operations = append(d.operations, jsonpatch.NewOperation("remove", path, nil))
}

func (d *differ) objects(path string, o, b, a int) {
	inOriginal, inBefore, inAfter := d.original.fields(o), d.before.fields(b), d.after.fields(a)
	for ac := d.after.first(a); ac > 0; ac = d.after.nodes[ac].next {
		key := d.after.nodes[ac].key
		bc, inB := inBefore.find(key)
		if inB && bytes.Equal(d.before.raw(bc), d.after.raw(ac)) {
			continue
		}
		oc, inO := inOriginal.find(key)
		switch {
		case inO && inB:
			d.values(below(path, key), oc, bc, ac)
		case inB && equal(d.before, bc, d.after, ac):
			// An empty value that the Go type writes where the original has none.
		case inO: // a value that the Go type omitted before, or did not know
			if !equal(d.original, oc, d.after, ac) {
				d.set("replace", below(path, key), ac)
			}
		default:
			d.set("add", below(path, key), ac)
		}
	}
	for bc := d.before.first(b); bc > 0; bc = d.before.nodes[bc].next {
		key := d.before.nodes[bc].key
		if _, stays := inAfter.find(key); stays {
			continue
		}
		if _, inO := inOriginal.find(key); inO {
			d.remove(below(path, key))
		}
	}
}

// lists compares two lists; original's has the items of before's. Items are known by their name where all have one, and by
// their place otherwise.
func (d *differ) lists(path string, o, b, a int) {
	os, bs, as := d.original.items(o), d.before.items(b), d.after.items(a)
	if bNames, ok := names(d.before, bs); ok {
		if aNames, ok := names(d.after, as); ok && d.sameOrder(as, bNames) {
			d.named(path, os, bs, as, bNames, aNames)
			return
		}
	}
	d.placed(path, os, bs, as)
}

// names gives the places of items by their name. It is not ok if an item has no name of its own.
func names(doc *document, items []int) (map[string]int, bool) {
	byName := make(map[string]int, len(items))
	for i, item := range items {
		name, ok := nameOf(doc, item)
		if _, twice := byName[name]; !ok || twice {
			return nil, false
		}
		byName[name] = i
	}
	return byName, true
}

var nameKey = []byte("name")

func nameOf(doc *document, item int) (string, bool) {
	if doc.nodes[item].kind != '{' {
		return "", false
	}
	all := doc.fields(item)
	name, ok := all.find(nameKey)
	if !ok || doc.nodes[name].kind != '"' {
		return "", false
	}
	return unquote(doc.raw(name)), true
}

// sameOrder says whether the items that both lists have come in one order.
func (d *differ) sameOrder(as []int, bNames map[string]int) bool {
	last := -1
	for _, item := range as {
		name, _ := nameOf(d.after, item)
		if at, ok := bNames[name]; ok {
			if at < last {
				return false
			}
			last = at
		}
	}
	return true
}

// named goes through both lists at once. at is the place in the list as the operations so far have made it.
func (d *differ) named(path string, os, bs, as []int, bNames, aNames map[string]int) {
	b, at := 0, 0
	gone := func() bool {
		if b == len(bs) {
			return false
		}
		name, _ := nameOf(d.before, bs[b])
		_, stays := aNames[name]
		return !stays
	}
	for _, item := range as {
		name, _ := nameOf(d.after, item)
		for ; gone(); b++ {
			d.remove(place(path, at))
		}
		if _, known := bNames[name]; known {
			d.values(place(path, at), os[b], bs[b], item)
			b++
		} else {
			d.set("add", place(path, at), item)
		}
		at++
	}
	for ; gone(); b++ {
		d.remove(place(path, at))
	}
}

// placed leaves out what is equal at both ends. The rest is compared item by item if nothing came or went there; otherwise it
// cannot be told which item became which, and each that differs is put whole.
func (d *differ) placed(path string, os, bs, as []int) {
	from := 0
	for from < min(len(bs), len(as)) && equal(d.before, bs[from], d.after, as[from]) {
		from++
	}
	bEnd, aEnd := len(bs), len(as)
	for bEnd > from && aEnd > from && equal(d.before, bs[bEnd-1], d.after, as[aEnd-1]) {
		bEnd, aEnd = bEnd-1, aEnd-1
	}
	for i := from; i < min(bEnd, aEnd); i++ {
		if bEnd == aEnd {
			d.values(place(path, i), os[i], bs[i], as[i])
		} else {
			d.whole(place(path, i), bs[i], as[i])
		}
	}
	for i := bEnd - 1; i >= aEnd; i-- {
		d.remove(place(path, i))
	}
	for i := bEnd; i < aEnd; i++ {
		d.set("add", place(path, i), as[i])
	}
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

func below(path string, key []byte) string { return path + "/" + pointer.Replace(string(key)) }

func place(path string, index int) string { return path + "/" + strconv.Itoa(index) }
