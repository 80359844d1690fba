// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package apiutil

import (
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// DecodeUnstructured reads a JSON object into an unstructured object or list, whose former content is gone; on an error it
// is undefined. It gives what unstructured.UnstructuredJSONScheme gives: integers as int64 where they fit and float64
// else, and an error for which runtime.IsMissingKind is true if there is no kind. It does so with fewer copies, and repeated
// keys and values share their memory, so that a cache of objects that were read with it is smaller. data is not kept.
func DecodeUnstructured(data []byte, into runtime.Object) error {
	switch target := into.(type) {
	case *unstructured.Unstructured:
		tree, err := decodeTree(data)
		if err != nil {
			return err
		}
		target.Object = tree
		return needKind(target, data)
	case *unstructured.UnstructuredList:
		tree, err := decodeTree(data)
		if err != nil {
			return err
		}
		return fillList(target, tree, data)
	default:
		_, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, into)
		return err
	}
}

func needKind(obj runtime.Object, data []byte) error {
	if obj.GetObjectKind().GroupVersionKind().Kind == "" {
		return runtime.NewMissingKindErr(string(data[:min(len(data), maxShownInput)]))
	}
	return nil
}

// maxShownInput is the most of a wrong input that an error shows.
const maxShownInput = 512

// fillList takes the items out of the tree of a list. Items that do not tell their kind get that of the list.
func fillList(list *unstructured.UnstructuredList, tree map[string]any, data []byte) error {
	items, _ := tree["items"].([]any)
	if _, present := tree["items"]; present && items == nil && tree["items"] != nil {
		return errors.New("the items of the list are no array")
	}
	delete(tree, "items")
	list.Object = tree
	if err := needKind(list, data); err != nil {
		return err
	}
	item := ItemKind(list.GroupVersionKind())
	list.Items = make([]unstructured.Unstructured, len(items))
	for i := range items {
		object, ok := items[i].(map[string]any)
		if !ok {
			return fmt.Errorf("item %d of the list is no object", i)
		}
		list.Items[i].Object = object
		if list.Items[i].GetKind() == "" && list.Items[i].GetAPIVersion() == "" {
			list.Items[i].SetGroupVersionKind(item)
		}
		if err := needKind(&list.Items[i], data); err != nil {
			return err
		}
	}
	return nil
}

// maxTreeDepth is how deep a document may be nested, as in encoding/json.
const maxTreeDepth = 10000

// A treeReader reads one JSON document into maps, slices and scalars.
type treeReader struct {
	data []byte
	at   int
	deep int
	// stack holds the members of the objects and arrays that are being read, innermost last, so that each can be made in
	// its final size.
	stack []treeMember
}

type treeMember struct {
	key   string
	value any
}

func decodeTree(data []byte) (map[string]any, error) {
	r := treeReader{data: data, stack: make([]treeMember, 0, 64)}
	value, err := r.value()
	if err != nil {
		return nil, err
	}
	if r.skip(); r.at < len(data) {
		return nil, r.wrong("something after the document")
	}
	tree, ok := value.(map[string]any)
	if !ok {
		return nil, r.wrong("the document is no object")
	}
	return tree, nil
}

func (r *treeReader) wrong(what string) error {
	return fmt.Errorf("read JSON: %s at offset %d of %d", what, min(r.at, len(r.data)), len(r.data))
}

// next skips white space and returns the byte after it, 0 at the end.
func (r *treeReader) next() byte {
	r.skip()
	if r.at < len(r.data) {
		return r.data[r.at]
	}
	return 0
}

func (r *treeReader) skip() {
	for r.at < len(r.data) {
		switch r.data[r.at] {
		case ' ', '\n', '\t', '\r':
			r.at++
		default:
			return
		}
	}
}

func (r *treeReader) value() (any, error) {
	switch c := r.next(); c {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		text, err := r.text()
		if err != nil {
			return nil, err
		}
		return sharedValues.any(text), nil
	case 't':
		return true, r.literal("true")
	case 'f':
		return false, r.literal("false")
	case 'n':
		return nil, r.literal("null")
	default:
		return r.number()
	}
}

func (r *treeReader) literal(word string) error {
	if len(r.data)-r.at < len(word) || string(r.data[r.at:r.at+len(word)]) != word {
		return r.wrong("invalid value")
	}
	r.at += len(word)
	return nil
}

// enter and the function that it returns bound the depth of nesting.
func (r *treeReader) enter() error {
	if r.deep++; r.deep > maxTreeDepth {
		return r.wrong("nested too deep")
	}
	r.at++
	return nil
}

func (r *treeReader) object() (any, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	base := len(r.stack)
	for c := r.next(); c != '}'; {
		if c != '"' {
			return nil, r.wrong("a key was expected")
		}
		text, err := r.text()
		if err != nil {
			return nil, err
		}
		key := sharedKeys.string(text)
		if r.next() != ':' {
			return nil, r.wrong("a colon was expected")
		}
		r.at++
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		r.stack = append(r.stack, treeMember{key, value})
		if c, err = r.separator('}'); err != nil {
			return nil, err
		}
	}
	r.at++
	r.deep--
	out := make(map[string]any, len(r.stack)-base)
	for _, m := range r.stack[base:] {
		out[m.key] = m.value
	}
	r.drop(base)
	return out, nil
}

func (r *treeReader) array() (any, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	base := len(r.stack)
	for c := r.next(); c != ']'; {
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		r.stack = append(r.stack, treeMember{value: value})
		if c, err = r.separator(']'); err != nil {
			return nil, err
		}
	}
	r.at++
	r.deep--
	out := make([]any, len(r.stack)-base)
	for i, m := range r.stack[base:] {
		out[i] = m.value
	}
	r.drop(base)
	return out, nil
}

// separator reads what stands after a member: a comma with another member behind it, or the end, which it leaves.
func (r *treeReader) separator(end byte) (byte, error) {
	switch r.next() {
	case end:
		return end, nil
	case ',':
		r.at++
		if c := r.next(); c != end {
			return c, nil
		}
	}
	return 0, r.wrong("a comma or the end was expected")
}

func (r *treeReader) drop(base int) {
	clear(r.stack[base:])
	r.stack = r.stack[:base]
}

// number reads a number: an int64 if it is written as an integer and fits, else a float64.
func (r *treeReader) number() (any, error) {
	start, integer := r.at, true
	if r.peek() == '-' {
		r.at++
	}
	switch c := r.peek(); {
	case c == '0':
		r.at++
	case c >= '1' && c <= '9':
		r.digits()
	default:
		return nil, r.wrong("invalid value")
	}
	if r.peek() == '.' {
		r.at++
		integer = false
		if !r.digits() {
			return nil, r.wrong("a digit was expected")
		}
	}
	if c := r.peek(); c == 'e' || c == 'E' {
		r.at++
		integer = false
		if c := r.peek(); c == '+' || c == '-' {
			r.at++
		}
		if !r.digits() {
			return nil, r.wrong("a digit was expected")
		}
	}
	text := string(r.data[start:r.at])
	if integer {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, r.wrong("the number " + text + " is too large")
	}
	return f, nil
}

func (r *treeReader) peek() byte {
	if r.at < len(r.data) {
		return r.data[r.at]
	}
	return 0
}

func (r *treeReader) digits() bool {
	start := r.at
	for c := r.peek(); c >= '0' && c <= '9'; c = r.peek() {
		r.at++
	}
	return r.at > start
}

// text reads a string and returns its bytes: a part of the input if nothing in it is escaped or invalid.
func (r *treeReader) text() ([]byte, error) {
	r.at++
	start, ascii := r.at, true
	for ; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; {
		case c == '"':
			text := r.data[start:r.at]
			if !ascii && !utf8.Valid(text) {
				r.at = start
				return r.escapedText()
			}
			r.at++
			return text, nil
		case c == '\\':
			r.at = start
			return r.escapedText()
		case c < ' ':
			return nil, r.wrong("a control character in a string")
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, r.wrong("the string does not end")
}

// escapedText reads the rest of a string with escapes or invalid UTF-8 in it. Invalid UTF-8 and lone surrogates become
// U+FFFD, as in encoding/json.
func (r *treeReader) escapedText() ([]byte, error) {
	out := make([]byte, 0, 64)
	for r.at < len(r.data) {
		switch c := r.data[r.at]; {
		case c == '"':
			r.at++
			return out, nil
		case c < ' ':
			return nil, r.wrong("a control character in a string")
		case c == '\\':
			r.at++
			var err error
			if out, err = r.escape(out); err != nil {
				return nil, err
			}
		default:
			char, size := utf8.DecodeRune(r.data[r.at:])
			r.at += size
			out = utf8.AppendRune(out, char)
		}
	}
	return nil, r.wrong("the string does not end")
}

func (r *treeReader) escape(out []byte) ([]byte, error) {
	c := r.peek()
	r.at++
	switch c {
	case '"', '\\', '/':
		return append(out, c), nil
	case 'b':
		return append(out, '\b'), nil
	case 'f':
		return append(out, '\f'), nil
	case 'n':
		return append(out, '\n'), nil
	case 'r':
		return append(out, '\r'), nil
	case 't':
		return append(out, '\t'), nil
	case 'u':
	default:
		return nil, r.wrong("an unknown escape")
	}
	char, ok := r.hex()
	if !ok {
		return nil, r.wrong("an escape that is no four hexadecimal digits")
	}
	if utf16.IsSurrogate(char) {
		pair := r.at
		low := rune(utf8.RuneError)
		if r.peek() == '\\' && r.at+1 < len(r.data) && r.data[r.at+1] == 'u' {
			r.at += 2
			if low, ok = r.hex(); !ok {
				r.at = pair
				low = utf8.RuneError
			}
		}
		if char = utf16.DecodeRune(char, low); char == utf8.RuneError {
			r.at = pair // the second one stands for itself
		}
	}
	return utf8.AppendRune(out, char), nil
}

// hex reads four hexadecimal digits.
func (r *treeReader) hex() (rune, bool) {
	if len(r.data)-r.at < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(r.data[r.at:r.at+4]), 16, 32)
	if err != nil {
		return 0, false
	}
	r.at += 4
	return rune(n), true
}
