// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package komega

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// difference is a place where two objects differ. A side that is not there is
// the zero Value.
type difference struct {
	path
	want, got reflect.Value
}

// differ appends where want and got differ to found, as deep in them as both
// sides go.
func differ(found []difference, p path, want, got reflect.Value) []difference {
	here := append(found, difference{p, want, got})
	if !want.IsValid() || !got.IsValid() {
		if want.IsValid() == got.IsValid() {
			return found
		}
		return here
	}
	if want.Type() != got.Type() {
		return here
	}
	if equal, can := byMethod(want, got); can {
		if equal {
			return found
		}
		return here
	}
	switch want.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func:
		if want.IsNil() || got.IsNil() {
			if want.IsNil() == got.IsNil() {
				return found
			}
			return here
		}
	}
	switch want.Kind() {
	case reflect.Pointer, reflect.Interface:
		return differ(found, p, want.Elem(), got.Elem())
	case reflect.Struct:
		for i := range want.NumField() {
			found = differ(found, p.field(want.Type().Field(i)), want.Field(i), got.Field(i))
		}
	case reflect.Slice, reflect.Array:
		for i := range max(want.Len(), got.Len()) {
			found = differ(found, p.key(fmt.Sprint(i)), element(want, i), element(got, i))
		}
	case reflect.Map:
		for _, k := range keys(want, got) {
			found = differ(found, p.key(k.name), want.MapIndex(k.value), got.MapIndex(k.value))
		}
	case reflect.Func: // two functions cannot be compared
		return here
	default:
		if !want.Equal(got) {
			return here
		}
	}
	return found
}

// element is an element of a list, or the zero Value behind its end.
func element(list reflect.Value, i int) reflect.Value {
	if i < list.Len() {
		return list.Index(i)
	}
	return reflect.Value{}
}

// mapKey is a key and how it is written.
type mapKey struct {
	name  string
	value reflect.Value
}

// keys are those of all maps, ordered.
func keys(all ...reflect.Value) []mapKey {
	found := map[string]mapKey{}
	for _, m := range all {
		for _, k := range m.MapKeys() {
			name := fmt.Sprint(k)
			found[name] = mapKey{name, k}
		}
	}
	var out []mapKey
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[name])
	}
	return out
}

// byMethod compares by the type's own method Equal, if it has one: so are times
// and quantities equal that are written differently.
func byMethod(want, got reflect.Value) (equal, can bool) {
	if !want.CanInterface() {
		return false, false // a private field's methods cannot be called
	}
	method := want.MethodByName("Equal")
	if !method.IsValid() {
		return false, false
	}
	t := method.Type()
	if t.NumIn() != 1 || t.IsVariadic() || t.NumOut() != 1 || t.Out(0).Kind() != reflect.Bool || !got.Type().AssignableTo(t.In(0)) {
		return false, false
	}
	if want.Kind() == reflect.Pointer && (want.IsNil() || got.IsNil()) {
		return want.IsNil() == got.IsNil(), true
	}
	return method.Call([]reflect.Value{got})[0].Bool(), true
}

// deeper reports whether a difference whose one side is missing lies in part in
// one of the paths that lead through it: then that side has something there.
func (d difference) deeper(list [][]string) bool {
	return reaches(d.path, d.want, list) || reaches(d.path, d.got, list)
}

// reaches reports whether a value has something other than zero in one of the
// paths in list.
func reaches(p path, v reflect.Value, list [][]string) bool {
	switch {
	case !v.IsValid() || v.IsZero():
		return false
	case p.within(list):
		return true
	case !p.above(list):
		return false
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return reaches(p, v.Elem(), list)
	case reflect.Struct:
		for i := range v.NumField() {
			if reaches(p.field(v.Type().Field(i)), v.Field(i), list) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if reaches(p.key(fmt.Sprint(i)), v.Index(i), list) {
				return true
			}
		}
	case reflect.Map:
		for _, k := range keys(v) {
			if reaches(p.key(k.name), v.MapIndex(k.value), list) {
				return true
			}
		}
	}
	return false
}

// String says what differs in one line.
func (d difference) String() string {
	return fmt.Sprintf("%s: %s, want %s", d.path, shown(d.got), shown(d.want))
}

// shownLength bounds how much of a value an error repeats.
const shownLength = 200

func shown(v reflect.Value) string {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		if v.IsNil() {
			return "nothing"
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return "nothing"
	}
	format := "%+v"
	if v.Kind() == reflect.String {
		format = "%q"
	}
	text := fmt.Sprintf(format, v)
	if len(text) > shownLength {
		text = text[:shownLength] + "…"
	}
	return text
}
