// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package komega

import (
	"reflect"
	"slices"
	"strings"
)

// path is where a value lies in an object, step by step: once by the names of Go
// fields and once by those of JSON. Indexes and map keys are steps of their own.
type path struct{ fields, json []string }

// field is the path of a struct's field. One that JSON inlines is a step in Go
// only.
func (p path) field(f reflect.StructField) path {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	next := path{append(slices.Clip(p.fields), f.Name), p.json}
	switch {
	case name == "" && f.Anonymous:
	case name == "" || name == "-":
		next.json = append(slices.Clip(p.json), f.Name)
	default:
		next.json = append(slices.Clip(p.json), name)
	}
	return next
}

// key is the path of an element of a map or a list.
func (p path) key(k string) path {
	return path{append(slices.Clip(p.fields), k), append(slices.Clip(p.json), k)}
}

// within reports whether the path leads to or through one of those in list.
func (p path) within(list [][]string) bool {
	return slices.ContainsFunc(list, func(q []string) bool { return begins(p.fields, q) || begins(p.json, q) })
}

// above reports whether one of those in list leads through the path.
func (p path) above(list [][]string) bool {
	return slices.ContainsFunc(list, func(q []string) bool { return begins(q, p.fields) || begins(q, p.json) })
}

func begins(steps, with []string) bool {
	return len(steps) >= len(with) && slices.Equal(steps[:len(with)], with)
}

// special are the characters for which a map key is written in brackets.
const special = `.[]/\`

// String writes the path as IgnorePaths and MatchPaths read it.
func (p path) String() string {
	var b strings.Builder
	for _, s := range p.json {
		switch {
		case strings.ContainsAny(s, special) || s != "" && strings.Trim(s, "0123456789") == "":
			b.WriteString("[" + s + "]")
		case b.Len() > 0:
			b.WriteString("." + s)
		default:
			b.WriteString(s)
		}
	}
	if b.Len() == 0 {
		return "the object"
	}
	return b.String()
}

// parse reads a path. What stands in brackets is one step, whatever is in it.
func parse(text string) []string {
	var steps []string
	for text != "" {
		if text[0] == '.' {
			text = text[1:]
			continue
		}
		if text[0] == '[' {
			if end := strings.IndexByte(text, ']'); end > 0 {
				steps = append(steps, text[1:end])
				text = text[end+1:]
				continue
			}
		}
		end := strings.IndexAny(text[1:], ".[") + 1
		if end == 0 {
			end = len(text)
		}
		steps = append(steps, text[:end])
		text = text[end:]
	}
	return steps
}
