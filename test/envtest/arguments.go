// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
)

// Arg is the values of one flag. Arguments has its own kinds of it; SetRaw takes
// one of yours, whose Get is asked only when the program starts.
type Arg interface {
	// Append returns an Arg with these values behind its own. The receiver may
	// be used up by it.
	Append(vals ...string) Arg
	// Get returns the values to pass, given those the flag has by default. Nil
	// leaves the flag out; an empty slice passes its name alone.
	Get(defaults []string) []string
}

// Arguments are the flags of a program, by name and without the leading dashes.
// A flag that was never mentioned keeps its default. Every method that changes
// them returns the receiver, so that calls can be chained. They are not for use
// by several goroutines at once, and changing them does nothing to a program
// that runs already.
type Arguments struct {
	flags map[string]Arg
}

// EmptyArguments makes Arguments in which no flag is mentioned. A test needs
// none of its own: Configure of APIServer and Etcd hands out theirs.
var EmptyArguments = func() *Arguments { return &Arguments{} }

// given are values that stand for themselves.
type given []string

func (a given) Append(vals ...string) Arg { return slices.Concat(a, vals) }
func (a given) Get([]string) []string     { return a }

// added are values that follow the default ones.
type added []string

func (a added) Append(vals ...string) Arg      { return slices.Concat(a, vals) }
func (a added) Get(defaults []string) []string { return slices.Concat(defaults, a) }

// absent leaves its flag out, until values are appended.
type absent struct{}

func (absent) Append(vals ...string) Arg { return given(vals) }
func (absent) Get([]string) []string     { return nil }

// bare passes its flag's name alone, whatever is appended.
type bare struct{}

func (bare) Append(...string) Arg  { return bare{} }
func (bare) Get([]string) []string { return []string{} }

// Get returns what is said about a flag; of one that was never mentioned, an Arg
// that returns the defaults it is given.
func (a *Arguments) Get(key string) Arg {
	if arg, mentioned := a.flags[key]; mentioned {
		return arg
	}
	return added(nil)
}

// Set gives a flag these values, whatever it had before. Several mean that it is
// passed several times; none at all leaves it out.
func (a *Arguments) Set(key string, values ...string) *Arguments {
	return a.SetRaw(key, given(slices.Clone(values)))
}

// Append adds values to those the flag has, which are its defaults if it was
// never mentioned.
func (a *Arguments) Append(key string, values ...string) *Arguments {
	return a.SetRaw(key, a.Get(key).Append(values...))
}

// AppendNoDefaults adds values to those the flag has, which are none if it was
// never mentioned.
func (a *Arguments) AppendNoDefaults(key string, values ...string) *Arguments {
	if _, mentioned := a.flags[key]; !mentioned {
		return a.Set(key, values...)
	}
	return a.Append(key, values...)
}

// Enable passes the flag by its name alone, as in --key.
func (a *Arguments) Enable(key string) *Arguments { return a.SetRaw(key, bare{}) }

// Disable leaves the flag out, its defaults too.
func (a *Arguments) Disable(key string) *Arguments { return a.SetRaw(key, absent{}) }

// SetRaw gives a flag an Arg of the caller's.
func (a *Arguments) SetRaw(key string, val Arg) *Arguments {
	if a.flags == nil {
		a.flags = map[string]Arg{}
	}
	a.flags[key] = val
	return a
}

// AsStrings returns the flags as a command line has them, ordered by name:
// --key=value once for each value, or --key. A flag that was never mentioned
// has the values defaults give it.
func (a *Arguments) AsStrings(defaults map[string][]string) []string {
	return line(a.values(defaults))
}

// flagValues is a flag that is passed; without values by its name alone.
type flagValues struct {
	name   string
	values []string
}

// line writes flags as a command line has them.
func line(flags []flagValues) []string {
	var out []string
	for _, f := range flags {
		if len(f.values) == 0 {
			out = append(out, "--"+f.name)
		}
		for _, value := range f.values {
			out = append(out, "--"+f.name+"="+value)
		}
	}
	return out
}

// values returns the flags to pass, ordered by name.
func (a *Arguments) values(defaults map[string][]string) []flagValues {
	names := slices.Collect(maps.Keys(defaults))
	names = slices.AppendSeq(names, maps.Keys(a.flags))
	slices.Sort(names)
	var out []flagValues
	for _, name := range slices.Compact(names) {
		if values := a.Get(name).Get(defaults[name]); values != nil {
			out = append(out, flagValues{name, values})
		}
	}
	return out
}

// render executes each template with data: that is how the deprecated fields
// Args are written.
func render(templates []string, data any) ([]string, error) {
	var out []string
	for _, text := range templates {
		parsed, err := template.New("argument").Parse(text)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", text, err)
		}
		var b bytes.Buffer
		if err := parsed.Execute(&b, data); err != nil {
			return nil, fmt.Errorf("argument %q: %w", text, err)
		}
		out = append(out, b.String())
	}
	return out, nil
}

// take moves what is of the form --name=value from line into a copy of a, and
// returns the copy and the rest. What follows a lone -- is rest.
func (a *Arguments) take(line []string) (*Arguments, []string) {
	out := &Arguments{flags: maps.Clone(a.flags)}
	var rest []string
	for i, word := range line {
		if word == "--" {
			return out, append(rest, line[i:]...)
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		switch {
		case word == "": // what an unfulfilled condition in a template leaves
		case !ok || !strings.HasPrefix(word, "--"):
			rest = append(rest, word)
		default:
			out.AppendNoDefaults(name, value)
		}
	}
	return out, rest
}
