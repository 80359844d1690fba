// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/base64"
	stdjson "encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/json"
)

// A plan reads one value into v, which is settable and zero, to the same effect as the full decoder. It is false for what it
// does not read, in which case there may be anything in v.
type plan func(s *scanner, v reflect.Value) bool

// plans are those that were made, by type. Types are as many as the program has.
var plans sync.Map

// decodeByPlan reads text into obj, a pointer to a zero struct. It is false for a text that the full decoder must look at; obj
// is zero again then.
func decodeByPlan(text []byte, obj reflect.Value) bool {
	s := newScanner(text)
	if s.next() == '{' && planOf(obj.Type().Elem())(s, obj.Elem()) && s.next() == 0 && s.at == len(text) {
		return true
	}
	obj.Elem().SetZero()
	return false
}

func planOf(t reflect.Type) plan {
	if made, ok := plans.Load(t); ok {
		return made.(plan)
	}
	// A type may have itself inside: it finds this plan then, which waits for the real one.
	var ready sync.WaitGroup
	var real plan
	ready.Add(1)
	made, other := plans.LoadOrStore(t, plan(func(s *scanner, v reflect.Value) bool {
		ready.Wait()
		return real(s, v)
	}))
	if other {
		return made.(plan)
	}
	real = newPlan(t)
	ready.Done()
	plans.Store(t, real)
	return real
}

var (
	unmarshaler     = reflect.TypeFor[stdjson.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
	numberText      = reflect.TypeFor[stdjson.Number]()
)

func newPlan(t reflect.Type) plan {
	switch pointer := reflect.PointerTo(t); {
	case t.Name() == "" && (pointer.Implements(unmarshaler) || pointer.Implements(textUnmarshaler)):
		return readNever
	case pointer.Implements(unmarshaler):
		return readByItself
	case pointer.Implements(textUnmarshaler), t == numberText:
		return readFully
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(s *scanner, v reflect.Value) bool {
			switch {
			case s.word("true"):
				v.SetBool(true)
				return true
			default:
				return s.word("false") || s.word("null")
			}
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return readInt
	case reflect.String:
		return readString
	case reflect.Pointer:
		return readPointer(t)
	case reflect.Slice:
		return readSlice(t)
	case reflect.Map:
		return readMap(t)
	case reflect.Struct:
		return readStruct(t)
	}
	return readFully
}

// readByItself is for a type that can read itself.
func readByItself(s *scanner, v reflect.Value) bool {
	text, ok := s.span()
	return ok && v.Addr().Interface().(stdjson.Unmarshaler).UnmarshalJSON(text) == nil
}

// readFully is for a type that is left to the full decoder.
func readFully(s *scanner, v reflect.Value) bool {
	text, ok := s.span()
	return ok && json.Unmarshal(text, v.Addr().Interface()) == nil
}

// readNever is for a struct without a name that embeds a type which reads itself: whether it does so too depends, for the full
// decoder, on where it lies.
func readNever(*scanner, reflect.Value) bool { return false }

func readInt(s *scanner, v reflect.Value) bool {
	if s.word("null") {
		return true
	}
	from := s.at
	if !s.number() {
		return false
	}
	n, err := strconv.ParseInt(string(s.text[from:s.at]), 10, 64)
	if err != nil || v.OverflowInt(n) {
		return false
	}
	v.SetInt(n)
	return true
}

func readString(s *scanner, v reflect.Value) bool {
	if s.word("null") {
		return true
	}
	value, ok := s.string()
	v.SetString(string(value))
	return ok
}

func readPointer(t reflect.Type) plan {
	elem := planOf(t.Elem())
	return func(s *scanner, v reflect.Value) bool {
		if s.word("null") {
			return true
		}
		v.Set(reflect.New(t.Elem()))
		return elem(s, v.Elem())
	}
}

func readSlice(t reflect.Type) plan {
	if t.Elem().Kind() == reflect.Uint8 {
		if t.Elem().PkgPath() != "" { // it may have methods
			return readFully
		}
		return readBytes
	}
	elem := planOf(t.Elem())
	return func(s *scanner, v reflect.Value) bool {
		if s.word("null") {
			return true
		}
		n, ok := s.count('[', ']')
		if !ok {
			return false
		}
		v.Set(reflect.MakeSlice(t, n, n))
		for i := range n {
			if i > 0 && !s.take(',') || !elem(s, v.Index(i)) {
				return false
			}
		}
		return s.leave(']')
	}
}

func readBytes(s *scanner, v reflect.Value) bool {
	if s.word("null") {
		return true
	}
	inner, plain, ok := s.quoted()
	if !ok || !plain {
		return false
	}
	b := make([]byte, base64.StdEncoding.DecodedLen(len(inner)))
	n, err := base64.StdEncoding.Decode(b, inner)
	v.SetBytes(b[:n])
	return err == nil
}

func readMap(t reflect.Type) plan {
	if t.Key().Kind() != reflect.String || reflect.PointerTo(t.Key()).Implements(textUnmarshaler) {
		return readFully
	}
	elem := planOf(t.Elem())
	return func(s *scanner, v reflect.Value) bool {
		if s.word("null") {
			return true
		}
		n, ok := s.count('{', '}')
		if !ok {
			return false
		}
		v.Set(reflect.MakeMapWithSize(t, n))
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		for i := range n {
			if i > 0 && !s.take(',') || s.next() != '"' || !readString(s, key) || !s.take(':') {
				return false
			}
			value.SetZero()
			if !elem(s, value) {
				return false
			}
			v.SetMapIndex(key, value)
		}
		return s.leave('}')
	}
}

// count goes into a list or object, and tells how many values it has. They are gone through once more, so that room for them
// is made once.
func (s *scanner) count(open, end byte) (n int, ok bool) {
	if !s.enter(open) {
		return 0, false
	}
	if s.next() == end {
		return 0, true
	}
	first := s.at
	for {
		if open == '{' {
			if _, _, ok := s.quoted(); !ok || !s.take(':') {
				return 0, false
			}
		}
		if !s.skip() {
			return 0, false
		}
		n++
		if !s.take(',') {
			break
		}
	}
	s.at = first
	return n, true
}

// A member is a field of a struct, by its name in JSON.
type member struct {
	name  string
	index []int
	read  plan
}

func readStruct(t reflect.Type) plan {
	members, ok := membersOf(t, nil, nil)
	if !ok || len(members) > 64 {
		return readFully
	}
	places := make(map[string]int, len(members))
	for i, m := range members {
		if _, twice := places[m.name]; twice { // which of them counts is the full decoder's business
			return readFully
		}
		places[m.name] = i
	}
	return func(s *scanner, v reflect.Value) bool {
		if s.word("null") {
			return true
		}
		if !s.enter('{') {
			return false
		}
		seen := uint64(0)
		for first, next := true, 0; ; first = false {
			if s.next() == '}' && first {
				break
			}
			name, plain, ok := s.quoted()
			if !ok || !plain || !s.take(':') {
				return false
			}
			place := next
			if place >= len(members) || members[place].name != string(name) {
				place, ok = places[string(name)]
			}
			if !ok {
				ok = s.skip()
			} else if ok = seen&(1<<place) == 0; ok { // of two the full decoder makes one
				seen, next = seen|1<<place, place+1
				ok = members[place].read(s, v.FieldByIndex(members[place].index))
			}
			if !ok {
				return false
			}
			if !s.take(',') {
				break
			}
		}
		return s.leave('}')
	}
}

// membersOf adds the fields of t, which lies at index, to members. It is not ok if they take more than the usual to find.
func membersOf(t reflect.Type, index []int, members []member) (all []member, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		at := append(index[:len(index):len(index)], i)
		switch {
		case f.Anonymous && (f.Type.Kind() == reflect.Pointer || !f.IsExported()), strings.Contains(options, "string"), strings.ContainsFunc(name, unusual):
			return nil, false
		case !f.IsExported(), tag == "-":
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			if members, ok = membersOf(f.Type, at, members); !ok {
				return nil, false
			}
		default:
			if name == "" {
				name = f.Name
			}
			members = append(members, member{name: name, index: at, read: planOf(f.Type)})
		}
	}
	return members, true
}

// unusual says that the full decoder may not take a name with r for one.
func unusual(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}
