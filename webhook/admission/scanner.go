// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"unicode/utf8"
)

// maxDepth is how deep a scanner goes into values in values. The full decoder, which reads what a scanner does not, goes deeper
// and has a limit of its own.
const maxDepth = 64

// A scanner goes once through a JSON text that anybody may have written. Its methods begin at the next value and stand behind
// it afterwards. One that returns false has met what is no JSON, or what a scanner does not read: the text is to be read by
// other means then.
type scanner struct {
	text  []byte
	at    int
	depth int // how many more values may lie in each other
}

func newScanner(text []byte) *scanner { return &scanner{text: text, depth: maxDepth} }

// next is the next byte that is no white space, 0 behind the last.
func (s *scanner) next() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\n', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

// take goes past c, if it is next.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.at++
	return true
}

// word goes past w, if it is next.
func (s *scanner) word(w string) bool {
	if s.next() != w[0] || len(s.text)-s.at < len(w) || string(s.text[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

// skip goes past a value of any kind.
func (s *scanner) skip() bool {
	switch s.next() {
	case '{':
		return s.skipObject()
	case '[':
		return s.skipList()
	case '"':
		_, _, ok := s.quoted()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

// span goes past a value and gives its text.
func (s *scanner) span() ([]byte, bool) {
	s.next()
	from := s.at
	ok := s.skip()
	return s.text[from:s.at:s.at], ok
}

// enter goes past a brace or bracket that opens.
func (s *scanner) enter(open byte) bool {
	s.depth--
	return s.depth >= 0 && s.take(open)
}

// leave goes past one that closes.
func (s *scanner) leave(end byte) bool {
	s.depth++
	return s.take(end)
}

func (s *scanner) skipObject() bool {
	if !s.enter('{') {
		return false
	}
	if s.next() == '}' {
		return s.leave('}')
	}
	for {
		if _, _, ok := s.quoted(); !ok || !s.take(':') || !s.skip() {
			return false
		}
		if !s.take(',') {
			return s.leave('}')
		}
	}
}

func (s *scanner) skipList() bool {
	if !s.enter('[') {
		return false
	}
	if s.next() == ']' {
		return s.leave(']')
	}
	for {
		if !s.skip() {
			return false
		}
		if !s.take(',') {
			return s.leave(']')
		}
	}
}

// quoted goes past a string and gives what is between its quotes. It is the string's value if it is plain.
func (s *scanner) quoted() (inner []byte, plain, ok bool) {
	if s.next() != '"' {
		return nil, false, false
	}
	from, at, escaped, bits := s.at+1, s.at+1, false, byte(0)
	for at < len(s.text) {
		c := s.text[at]
		switch {
		case c == '"':
			s.at = at + 1
			inner = s.text[from:at]
			return inner, !escaped && (bits < utf8.RuneSelf || utf8.Valid(inner)), true
		case c < ' ':
			return nil, false, false
		case c == '\\':
			length := escape(s.text[at:])
			if length == 0 {
				return nil, false, false
			}
			at, escaped = at+length, true
		default:
			bits |= c
			at++
		}
	}
	return nil, false, false
}

// string goes past a string and gives its value.
func (s *scanner) string() (value []byte, ok bool) {
	s.next()
	from := s.at
	inner, plain, ok := s.quoted()
	if plain || !ok {
		return inner, ok
	}
	var text string
	err := json.Unmarshal(s.text[from:s.at], &text)
	return []byte(text), err == nil
}

// escape is the length of the escape that text begins with, 0 if it is none.
func escape(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(text) < 6 {
			return 0
		}
		for _, c := range text[2:6] {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

func (s *scanner) number() bool {
	if s.at < len(s.text) && s.text[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if s.at < len(s.text) && (s.text[s.at] == 'e' || s.text[s.at] == 'E') {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

// digits goes past at least one digit.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

// A field is how one field of a T is read.
type field[T any] struct {
	name string
	read func(s *scanner, into *T) bool
}

// scanObject reads an object into into, which is empty. Names count with their case. Fields that are not in the list, of at
// most 64, are skipped. A field that comes twice is not read: whether the first or the second counts depends on its type.
func scanObject[T any](s *scanner, fields []field[T], into *T) bool {
	if s.word("null") {
		return true
	}
	if !s.enter('{') {
		return false
	}
	if s.next() == '}' {
		return s.leave('}')
	}
	seen, next := uint64(0), 0
	for {
		name, plain, ok := s.quoted()
		if !ok || !plain || !s.take(':') {
			return false
		}
		if i := indexOf(fields, name, next); i < 0 {
			ok = s.skip()
		} else {
			ok = seen&(1<<i) == 0 && fields[i].read(s, into)
			seen, next = seen|1<<i, i+1
		}
		if !ok {
			return false
		}
		if !s.take(',') {
			return s.leave('}')
		}
	}
}

// indexOf finds a field, which is likely to be the one at next or behind it. It is -1 if there is none.
func indexOf[T any](fields []field[T], name []byte, next int) int {
	for i := range fields {
		if at := (next + i) % len(fields); fields[at].name == string(name) {
			return at
		}
	}
	return -1
}

// scanString reads a string, or null as an empty one.
func scanString[S ~string](s *scanner, into *S) bool {
	if s.word("null") {
		return true
	}
	value, ok := s.string()
	if known, ok := usual[string(value)]; ok {
		*into = S(known)
	} else {
		*into = S(value)
	}
	return ok
}

// scanStrings reads a list of strings. Null is no list.
func scanStrings[L ~[]string](s *scanner, into *L) bool {
	if s.word("null") {
		return true
	}
	if !s.take('[') {
		return false
	}
	if s.take(']') {
		*into = L{}
		return true
	}
	var room [8]string // on the stack, so that the list is made once
	for items := room[:0]; ; {
		var item string
		if !scanString(s, &item) {
			return false
		}
		items = append(items, item)
		if !s.take(',') {
			*into = append(L(nil), items...)
			return s.take(']')
		}
	}
}

// scanPointer reads null as nil, and anything else by read.
func scanPointer[T any](s *scanner, into **T, read func(s *scanner, into *T) bool) bool {
	if s.word("null") {
		return true
	}
	*into = new(T)
	return read(s, *into)
}

// scanBool reads true or false.
func scanBool(s *scanner, into *bool) bool {
	*into = s.word("true")
	return *into || s.word("false")
}
