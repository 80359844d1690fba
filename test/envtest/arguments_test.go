// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/wherry-dev/wherry/test/envtest"
)

// fixed is an Arg of the caller's.
type fixed func(defaults []string) []string

func (f fixed) Append(...string) envtest.Arg   { return f }
func (f fixed) Get(defaults []string) []string { return f(defaults) }

func TestArguments(t *testing.T) {
	defaults := map[string][]string{"a": {"1"}, "b": {"2", "3"}}
	for _, c := range []struct {
		name string
		set  func(*envtest.Arguments)
		want []string
	}{
		{"nothing mentioned", func(*envtest.Arguments) {}, []string{"--a=1", "--b=2", "--b=3"}},
		{"set replaces the default", func(a *envtest.Arguments) { a.Set("a", "x", "y") }, []string{"--a=x", "--a=y", "--b=2", "--b=3"}},
		{"set replaces what was set", func(a *envtest.Arguments) { a.Append("a", "x").Set("a", "y") }, []string{"--a=y", "--b=2", "--b=3"}},
		{"set to nothing leaves out", func(a *envtest.Arguments) { a.Set("a") }, []string{"--b=2", "--b=3"}},
		{"append follows the default", func(a *envtest.Arguments) { a.Append("a", "x").Append("a", "y") }, []string{"--a=1", "--a=x", "--a=y", "--b=2", "--b=3"}},
		{"append follows what was set", func(a *envtest.Arguments) { a.Set("a", "x").Append("a", "y") }, []string{"--a=x", "--a=y", "--b=2", "--b=3"}},
		{"append without defaults", func(a *envtest.Arguments) { a.AppendNoDefaults("a", "x").AppendNoDefaults("a", "y") }, []string{"--a=x", "--a=y", "--b=2", "--b=3"}},
		{"append without defaults to one that has them", func(a *envtest.Arguments) { a.Append("a", "x").AppendNoDefaults("a", "y") }, []string{"--a=1", "--a=x", "--a=y", "--b=2", "--b=3"}},
		{"append to what has no default", func(a *envtest.Arguments) { a.Append("c", "x") }, []string{"--a=1", "--b=2", "--b=3", "--c=x"}},
		{"disable", func(a *envtest.Arguments) { a.Disable("b").Disable("c") }, []string{"--a=1"}},
		{"append after disable", func(a *envtest.Arguments) { a.Disable("a").Append("a", "x") }, []string{"--a=x", "--b=2", "--b=3"}},
		{"enable", func(a *envtest.Arguments) { a.Enable("a").Append("a", "x") }, []string{"--a", "--b=2", "--b=3"}},
		{"raw", func(a *envtest.Arguments) {
			a.SetRaw("b", fixed(func(d []string) []string { return d[1:] })).Append("b", "9")
		}, []string{"--a=1", "--b=3"}},
		{"an empty value is one", func(a *envtest.Arguments) { a.Set("a", "") }, []string{"--a=", "--b=2", "--b=3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := envtest.EmptyArguments()
			c.set(a)
			for range 2 { // asking changes nothing
				if got := a.AsStrings(defaults); !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			}
		})
	}
}

// TestArgumentsShareNothing appends twice to one flag of two Arguments.
func TestArgumentsShareNothing(t *testing.T) {
	mine := make([]string, 1, 4)
	mine[0] = "x"
	a, b := envtest.EmptyArguments().Set("f", mine...), envtest.EmptyArguments().Set("f", mine...)
	a.Append("f", "a")
	b.Append("f", "b")
	mine[0] = "changed"
	if got := fmt.Sprint(a.AsStrings(nil), b.AsStrings(nil)); got != "[--f=x --f=a] [--f=x --f=b]" {
		t.Errorf("got %s", got)
	}
}

func ExampleArguments() {
	flags := envtest.EmptyArguments().
		Set("event-ttl", "10m").
		Append("enable-admission-plugins", "AlwaysPullImages").
		Disable("allow-privileged")
	for _, f := range flags.AsStrings(map[string][]string{"allow-privileged": {"true"}, "v": {"1"}}) {
		fmt.Println(f)
	}
	// Output:
	// --enable-admission-plugins=AlwaysPullImages
	// --event-ttl=10m
	// --v=1
}
