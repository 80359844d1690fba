// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// mergeDiff makes the JSON merge patch (RFC 7396) that leads from one document to another.
//
// It works on the text of the two documents: what is equal as text is skipped, what differs is taken over as it is written.
// So no number in a field or list is ever changed by a detour over float64, and a large object of which little differs
// costs little. What is equal but written differently, as it can be within a runtime.RawExtension, at worst makes the patch
// longer. A merge patch cannot set a field to null: null in the wanted document means that the field is not there.
func mergeDiff(before, after []byte, _ Object) ([]byte, error) {
	before, after = bytes.TrimSpace(before), bytes.TrimSpace(after)
	if !isObject(before) || !isObject(after) {
		return nil, errors.New("make a merge patch: the objects are not written as JSON objects")
	}
	patch, err := appendFields(append(make([]byte, 0, maxSmallPatch), '{'), before, after, appendMergeField)
	if err != nil {
		return nil, err
	}
	return append(patch, '}'), nil
}

// maxSmallPatch is room for the usual patch.
const maxSmallPatch = 512

// maxDepth bounds the nesting of documents, as encoding/json does.
const maxDepth = 10000

var (
	errSyntax = errors.New("make a merge patch: invalid JSON")
	jsonNull  = []byte("null")
)

func isObject(value []byte) bool { return len(value) > 1 && value[0] == '{' }

// A fieldDiff appends what a patch says of a field that differs, which may be nothing. was is nil if the field is new; is
// is never nil. An error leaves anything behind the patch as it was given.
type fieldDiff func(patch, key, was, is []byte) ([]byte, error)

// appendFields appends the fields of the patch between two objects to the patch's own object, which is open.
func appendFields(patch, before, after []byte, differs fieldDiff) ([]byte, error) {
	old, err := membersOf(before)
	if err != nil {
		return patch, err
	}
	wanted, err := membersOf(after)
	if err != nil {
		return patch, err
	}
	for i, field := range old.list {
		if !bytes.Equal(field.value, jsonNull) && wanted.find(field.key, i) == nil {
			patch = append(appendKey(patch, field.key), jsonNull...)
		}
	}
	for i, field := range wanted.list {
		was := old.find(field.key, i)
		if bytes.Equal(was, field.value) || was == nil && bytes.Equal(field.value, jsonNull) {
			continue
		}
		if patch, err = differs(patch, field.key, was, field.value); err != nil {
			return patch, err
		}
	}
	return patch, nil
}

// appendMergeField is the fieldDiff of a merge patch.
func appendMergeField(patch, key, was, is []byte) ([]byte, error) {
	if isObject(was) && isObject(is) {
		return appendObject(patch, key, was, is, appendMergeField)
	}
	return append(appendKey(patch, key), is...), nil
}

// appendObject appends a field that is an object in both documents, and nothing if there is nothing to say of it.
func appendObject(patch, key, was, is []byte, differs fieldDiff) ([]byte, error) {
	end := len(patch)
	patch = append(appendKey(patch, key), '{')
	inner := len(patch)
	patch, err := appendFields(patch, was, is, differs)
	if err != nil || len(patch) == inner {
		return patch[:end], err
	}
	return append(patch, '}'), nil
}

// appendKey begins a field of the object that is open.
func appendKey(patch, key []byte) []byte {
	return append(append(appendComma(patch), key...), ':')
}

// appendComma parts what comes from what stands before it in the same object or list.
func appendComma(patch []byte) []byte {
	if last := patch[len(patch)-1]; last != '{' && last != '[' {
		return append(patch, ',')
	}
	return patch
}

// A member is one field of an object, as text; the key is in its quotes.
type member struct{ key, value []byte }

// members are the fields of an object in their order.
type members struct {
	list []member
	// index finds a key in objects of more than maxScanned fields; nil in smaller ones.
	index map[string]int
}

// maxScanned is how many fields are looked through one by one.
const maxScanned = 32

// find returns the value of a key, nil if there is none. likely is where it stands if both documents were written from the
// same type.
func (m *members) find(key []byte, likely int) []byte {
	if likely < len(m.list) && bytes.Equal(m.list[likely].key, key) {
		return m.list[likely].value
	}
	if i := m.position(key); i >= 0 {
		return m.list[i].value
	}
	return nil
}

func (m *members) position(key []byte) int {
	if m.index != nil {
		if i, ok := m.index[string(key)]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(m.list, func(f member) bool { return bytes.Equal(f.key, key) })
}

// add adds a field. If its key came before, the last one counts.
func (m *members) add(key, value []byte) {
	if i := m.position(key); i >= 0 {
		m.list[i].value = value
		return
	}
	m.list = append(m.list, member{key, value})
	switch n := len(m.list); {
	case m.index != nil:
		m.index[string(key)] = n - 1
	case n > maxScanned:
		m.index = make(map[string]int, 2*n)
		for i, f := range m.list {
			m.index[string(f.key)] = i
		}
	}
}

// membersOf splits an object into its fields.
func membersOf(object []byte) (*members, error) {
	found := &members{list: make([]member, 0, 8)}
	rest := skipSpace(object[1:])
	if len(rest) > 0 && rest[0] == '}' {
		return found, nil
	}
	for {
		key, after, err := splitValue(rest)
		if err != nil || len(key) < 2 || key[0] != '"' {
			return nil, errSyntax
		}
		if key, err = plainKey(key); err != nil {
			return nil, err
		}
		if after = skipSpace(after); len(after) == 0 || after[0] != ':' {
			return nil, errSyntax
		}
		value, after, err := splitValue(skipSpace(after[1:]))
		if err != nil {
			return nil, err
		}
		found.add(key, value)
		after = skipSpace(after)
		switch {
		case len(after) > 0 && after[0] == ',':
			rest = skipSpace(after[1:])
		case len(after) > 0 && after[0] == '}':
			return found, nil
		default:
			return nil, errSyntax
		}
	}
}

// plainKey rewrites a key with escapes in it in one fixed way, so that keys can be compared as text.
func plainKey(key []byte) ([]byte, error) {
	if bytes.IndexByte(key, '\\') < 0 {
		return key, nil
	}
	var text string
	if err := json.Unmarshal(key, &text); err != nil {
		return nil, errSyntax
	}
	return json.Marshal(text)
}

func skipSpace(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\n' || text[0] == '\t' || text[0] == '\r') {
		text = text[1:]
	}
	return text
}

// splitValue splits off the value that text starts with. It relies on text being valid JSON, as all that json.Marshal
// returns is, and does no more than find the value's end.
func splitValue(text []byte) (value, rest []byte, err error) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end := stringEnd(text, i)
			if end < 0 {
				return nil, nil, errSyntax
			}
			i = end
			if depth == 0 {
				return text[:i+1], text[i+1:], nil
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return nil, nil, errSyntax
			}
		case '}', ']':
			if depth == 0 {
				return endOfScalar(text, i)
			}
			if depth--; depth == 0 {
				return text[:i+1], text[i+1:], nil
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return endOfScalar(text, i)
			}
		}
	}
	return nil, nil, errSyntax
}

func endOfScalar(text []byte, end int) (value, rest []byte, err error) {
	if end == 0 {
		return nil, nil, errSyntax
	}
	return text[:end], text[end:], nil
}

// stringEnd gives the index of the quote that ends the string which begins at start, -1 if there is none.
func stringEnd(text []byte, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}
