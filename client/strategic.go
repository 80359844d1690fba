// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// strategicDiff makes the strategic merge patch that leads from one document to another; obj's type tells how each field
// is merged. It works on text as mergeDiff does. It says what apimachinery's strategicpatch says, but where that does not
// lead to the wanted document:
//
//   - A list in which a merge key comes twice, as a port of a Service does that takes TCP and UDP, is replaced as a whole: a
//     patch of its elements would change the wrong one. The server then puts elements with the same key together.
//   - What the Go type does not tell, as within a runtime.RawExtension, is replaced as a whole, not refused.
//   - A change in the order of a list of plain values is not missed, and such a list is left out if it did not change.
func strategicDiff(before, after []byte, obj Object) ([]byte, error) {
	if form := apiutil.FormOf(obj); form != apiutil.Typed {
		return nil, fmt.Errorf("make a strategic merge patch: it needs a typed object, a %T is %s: use MergeFrom", obj, form)
	}
	before, after = bytes.TrimSpace(before), bytes.TrimSpace(after)
	if !isObject(before) || !isObject(after) {
		return nil, errors.New("make a strategic merge patch: the objects are not written as JSON objects")
	}
	differs := patchFieldsOf(reflect.TypeOf(obj)).differs
	patch, err := appendFields(append(make([]byte, 0, maxSmallPatch), '{'), before, after, differs)
	if err != nil {
		return nil, fmt.Errorf("make a strategic merge patch of a %T: %w", obj, err)
	}
	return append(patch, '}'), nil
}

// errWhole is a difference that cannot be told within an object or list: what holds it has to be replaced as a whole.
var errWhole = errors.New("the Go type does not tell how to merge a field that differs")

// patchFields are a struct's fields by their JSON names.
type patchFields map[string]patchField

// A patchField is how one field is patched.
type patchField struct {
	// of is the type of an object, or of a list's elements. Its fields are looked up late: a type can hold itself.
	of reflect.Type
	// list is set for a list, but not for one of lists.
	list bool
	// merge has a list merged: by mergeKey, or as a set of plain values if that is empty.
	merge bool
	// mergeKey is in its quotes.
	mergeKey []byte
	// replace has an object replaced as a whole.
	replace bool
	// retainKeys has the patch of an object, or of a list's element, name the fields that stay.
	retainKeys bool
}

// differs is the fieldDiff of an object that has these fields.
func (fields patchFields) differs(patch, key, was, is []byte) ([]byte, error) {
	lists := isList(was) && isList(is)
	if !lists && !(isObject(was) && isObject(is)) {
		return append(appendKey(patch, key), is...), nil
	}
	field, known := fields[string(key[1:len(key)-1])]
	switch {
	case !known, lists && !field.list:
		return patch, errWhole
	case field.replace, lists && !field.merge:
		return append(appendKey(patch, key), is...), nil
	case !lists:
		return field.appendObject(patch, key, was, is)
	case len(field.mergeKey) == 0:
		return appendSet(patch, key, was, is)
	default:
		return field.appendKeyed(patch, key, was, is)
	}
}

func isList(value []byte) bool { return len(value) > 1 && value[0] == '[' }

// inside is the fieldDiff within an object, or within an element of a list.
func (f patchField) inside() fieldDiff { return patchFieldsOf(f.of).differs }

func (f patchField) appendObject(patch, key, was, is []byte) ([]byte, error) {
	end := len(patch)
	patch, err := appendObject(patch, key, was, is, f.inside())
	if errors.Is(err, errWhole) {
		return appendWhole(patch[:end], key, `{"$patch":"replace"`, is), nil
	}
	if err != nil || len(patch) == end || !f.retainKeys {
		return patch, err
	}
	patch, err = appendRetainKeys(patch[:len(patch)-1], is)
	return append(patch, '}'), err
}

// appendWhole appends a field that replaces an object or a list instead of being merged into it.
func appendWhole(patch, key []byte, directive string, is []byte) []byte {
	patch = append(appendKey(patch, key), directive...)
	rest := skipSpace(is[1:])
	if rest[0] != '}' && rest[0] != ']' {
		patch = append(patch, ',')
	}
	return append(patch, rest...)
}

// appendRetainKeys names the fields of an object that are to stay, if there are any.
func appendRetainKeys(patch, object []byte) ([]byte, error) {
	wanted, err := membersOf(object)
	if err != nil {
		return patch, err
	}
	end := len(patch)
	patch = append(appendKey(patch, []byte(`"$retainKeys"`)), '[')
	inner := len(patch)
	for _, field := range wanted.list {
		if !bytes.Equal(field.value, jsonNull) {
			patch = append(appendComma(patch), field.key...)
		}
	}
	if len(patch) == inner {
		return patch[:end], nil
	}
	return append(patch, ']'), nil
}

// appendSet appends what changes a list of plain values, which the server keeps as a set with an order.
func appendSet(patch, key, was, is []byte) ([]byte, error) {
	old, err := plainElements(was)
	if err != nil {
		return patch, err
	}
	wanted, err := plainElements(is)
	if err != nil {
		return patch, err
	}
	if len(old) == 0 {
		return append(appendKey(patch, key), is...), nil
	}
	patch = appendMissing(patch, key, wanted, old)
	patch = appendMissing(patch, directive("$deleteFromPrimitiveList/", key), old, wanted)
	if len(wanted) > 0 {
		patch = append(appendKey(patch, directive("$setElementOrder/", key)), is...)
	}
	return patch, nil
}

// directive is the key that goes with the key of a list.
func directive(name string, key []byte) []byte {
	return slices.Concat([]byte{'"'}, []byte(name), key[1:])
}

// appendMissing appends the values of one list that another lacks, and nothing if there are none.
func appendMissing(patch, key []byte, values, other [][]byte) []byte {
	end := len(patch)
	patch = append(appendKey(patch, key), '[')
	inner := len(patch)
	for i, value := range values {
		same := func(v []byte) bool { return bytes.Equal(v, value) }
		if !slices.ContainsFunc(other, same) && !slices.ContainsFunc(values[:i], same) {
			patch = append(appendComma(patch), value...)
		}
	}
	if len(patch) == inner {
		return patch[:end]
	}
	return append(patch, ']')
}

func plainElements(list []byte) ([][]byte, error) {
	elements, err := elementsOf(list)
	if slices.ContainsFunc(elements, func(e []byte) bool { return isObject(e) || isList(e) }) {
		return nil, errors.New("a list with the patch strategy merge has no merge key, and no plain values")
	}
	return elements, err
}

// appendKeyed appends what changes a list whose elements are told apart by the merge key.
func (f patchField) appendKeyed(patch, key, was, is []byte) ([]byte, error) {
	end := len(patch)
	patch, err := f.mergeKeyed(patch, key, was, is)
	if errors.Is(err, errWhole) {
		return appendWhole(patch[:end], key, `[{"$patch":"replace"}`, is), nil
	}
	return patch, err
}

// mergeKeyed is appendKeyed; its error may be errWhole.
func (f patchField) mergeKeyed(patch, key, was, is []byte) ([]byte, error) {
	old, err := f.elementsByKey(was)
	if err != nil {
		return patch, err
	}
	wanted, err := f.elementsByKey(is)
	if err != nil {
		return patch, err
	}
	if len(old.list) == 0 {
		return append(appendKey(patch, key), is...), nil
	}
	end := len(patch)
	patch = append(appendKey(patch, key), '[')
	inner := len(patch)
	if patch, err = f.appendElements(patch, old, wanted); err != nil {
		return patch, err
	}
	sameOrder := slices.EqualFunc(old.list, wanted.list, func(a, b member) bool { return bytes.Equal(a.key, b.key) })
	switch {
	case len(patch) > inner:
		patch = append(patch, ']')
	case sameOrder:
		return patch[:end], nil
	default:
		patch = patch[:end]
	}
	if len(wanted.list) == 0 {
		return patch, nil
	}
	patch = append(appendKey(patch, directive("$setElementOrder/", key)), '[')
	for _, element := range wanted.list {
		patch = append(f.appendMergeKey(patch, element), '}')
	}
	return append(patch, ']'), nil
}

// appendMergeKey begins an element.
func (f patchField) appendMergeKey(patch []byte, element member) []byte {
	return append(appendKey(append(appendComma(patch), '{'), f.mergeKey), element.key...)
}

// appendElements appends the elements that changed or are new, in their order, and then those that are gone.
func (f patchField) appendElements(patch []byte, old, wanted *members) ([]byte, error) {
	for i, element := range wanted.list {
		var err error
		switch was := old.find(element.key, i); {
		case was == nil:
			patch = append(appendComma(patch), element.value...)
		case !bytes.Equal(was, element.value):
			if patch, err = f.appendElement(patch, was, element); err != nil {
				return patch, err
			}
		}
	}
	for i, element := range old.list {
		if wanted.find(element.key, i) == nil {
			patch = append(f.appendMergeKey(patch, element), `,"$patch":"delete"}`...)
		}
	}
	return patch, nil
}

func (f patchField) appendElement(patch, was []byte, element member) ([]byte, error) {
	end := len(patch)
	patch = f.appendMergeKey(patch, element)
	inner := len(patch)
	patch, err := appendFields(patch, was, element.value, f.inside())
	if err != nil || len(patch) == inner {
		return patch[:end], err
	}
	if f.retainKeys {
		if patch, err = appendRetainKeys(patch, element.value); err != nil {
			return patch, err
		}
	}
	return append(patch, '}'), nil
}

// elementsByKey are the elements of a list, each under its value of the merge key.
func (f patchField) elementsByKey(list []byte) (*members, error) {
	elements, err := elementsOf(list)
	if err != nil {
		return nil, err
	}
	found := &members{list: make([]member, 0, len(elements))}
	for _, element := range elements {
		if !isObject(element) {
			return nil, fmt.Errorf("a list that is merged by %s holds %s", f.mergeKey, element)
		}
		fields, err := membersOf(element)
		if err != nil {
			return nil, err
		}
		key := fields.find(f.mergeKey, 0)
		if key == nil {
			return nil, fmt.Errorf("an element of a list lacks the merge key %s", f.mergeKey)
		}
		if found.position(key) >= 0 {
			return nil, errWhole
		}
		found.add(key, element)
	}
	return found, nil
}

// elementsOf splits a list into its elements.
func elementsOf(list []byte) ([][]byte, error) {
	var elements [][]byte
	rest := skipSpace(list[1:])
	if len(rest) > 0 && rest[0] == ']' {
		return nil, nil
	}
	for {
		element, after, err := splitValue(rest)
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
		after = skipSpace(after)
		switch {
		case len(after) > 0 && after[0] == ',':
			rest = skipSpace(after[1:])
		case len(after) > 0 && after[0] == ']':
			return elements, nil
		default:
			return nil, errSyntax
		}
	}
}

// knownPatchFields holds the patchFields of each struct that was asked for: reflect.Type to patchFields.
var knownPatchFields sync.Map

// patchFieldsOf gives the fields of a struct or of a pointer to one; of any other type there are none.
func patchFieldsOf(t reflect.Type) patchFields {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	if known, ok := knownPatchFields.Load(t); ok {
		return known.(patchFields)
	}
	fields, seen := patchFields{}, map[reflect.Type]bool{t: true}
	for level := []reflect.Type{t}; len(level) > 0; {
		level = slices.DeleteFunc(fields.addLevel(level), func(inner reflect.Type) bool { return seen[inner] })
		for _, inner := range level {
			seen[inner] = true
		}
	}
	knownPatchFields.Store(t, fields)
	return fields
}

// addLevel adds the fields of some structs, but for names that are known, and gives the structs that are embedded in them:
// as in encoding/json, an outer field hides those of the same name further in.
func (fields patchFields) addLevel(level []reflect.Type) (embedded []reflect.Type) {
	for _, t := range level {
		for i := range t.NumField() {
			field := t.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if field.Anonymous && name == "" && inner.Kind() == reflect.Struct {
				embedded = append(embedded, inner)
				continue
			}
			if name == "" {
				name = field.Name
			}
			if _, hidden := fields[name]; !hidden && field.IsExported() && name != "-" {
				fields[name] = patchFieldOf(field)
			}
		}
	}
	return embedded
}

func patchFieldOf(field reflect.StructField) patchField {
	f := patchField{of: field.Type}
	if f.of.Kind() == reflect.Pointer {
		f.of = f.of.Elem()
	}
	if kind := f.of.Kind(); kind == reflect.Slice || kind == reflect.Array {
		f.of = f.of.Elem()
		f.list = f.of.Kind() != reflect.Slice && f.of.Kind() != reflect.Array
	}
	for strategy := range strings.SplitSeq(field.Tag.Get("patchStrategy"), ",") {
		switch strategy {
		case "merge":
			f.merge = true
		case "replace":
			f.replace = true
		case "retainKeys":
			f.retainKeys = true
		}
	}
	if key := field.Tag.Get("patchMergeKey"); key != "" {
		f.mergeKey = []byte(`"` + key + `"`)
	}
	return f
}
