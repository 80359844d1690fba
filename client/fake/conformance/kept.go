// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:embed testdata/answers.json
var answers []byte

// Kept gives the server's answers as they were last written down, by the names of the cases.
func Kept() (map[string][]Step, error) {
	kept := map[string][]Step{}
	if err := json.Unmarshal(answers, &kept); err != nil {
		return nil, fmt.Errorf("the kept answers: %w", err)
	}
	return kept, nil
}

// Diff tells, a line for each field, how got differs from want.
func Diff(want, got []Step) []string {
	var all []string
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			all = append(all, fmt.Sprintf("step %d (%s) is missing", i+1, want[i].Do))
		case i >= len(want):
			all = append(all, fmt.Sprintf("step %d (%s) is one too many", i+1, got[i].Do))
		default:
			compare(fmt.Sprintf("step %d (%s)", i+1, want[i].Do), plain(want[i]), plain(got[i]), &all)
		}
	}
	return all
}

// plain gives a step as JSON has it, so that one from a file and one just made compare.
func plain(s Step) any {
	var v any
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		return err.Error()
	}
	return v
}

func compare(at string, want, got any, all *[]string) {
	w, isMap := want.(map[string]any)
	g, both := got.(map[string]any)
	if isMap && both {
		keys := slices.Collect(maps.Keys(w))
		for k := range g {
			if _, ok := w[k]; !ok {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, k := range keys {
			compare(at+"."+k, w[k], g[k], all)
		}
		return
	}
	ws, isList := want.([]any)
	gs, both := got.([]any)
	if isList && both && len(ws) == len(gs) {
		for i := range ws {
			compare(fmt.Sprintf("%s[%d]", at, i), ws[i], gs[i], all)
		}
		return
	}
	if a, b := short(want), short(got); a != b {
		*all = append(*all, fmt.Sprintf("%s: server %s, fake %s", at, a, b))
	}
}

func short(v any) string {
	if v == nil {
		return "nothing"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data))
}
