// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// report is where results are kept for readers: as JSON, as a chart, and as
// the table in the README. A path that is empty is left out.
type report struct {
	json, chart, readme string
	// keep the results of rows that did not run, as they stand in the JSON.
	keep bool
}

// merge puts results in the order of rows, and beside them what the JSON file holds of rows that were not measured now:
// rows are measured apart, so each keeps what one run said of both libraries.
func (r report) merge(results []result, rows []row) ([]result, error) {
	if !r.keep {
		return results, nil
	}
	if r.json == "" {
		return nil, errors.New("-keep: there is nothing to keep without -json")
	}
	before, err := readResults(r.json)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	of := func(all []result, name string) (found []result) {
		for _, one := range all {
			if one.Name == name {
				found = append(found, one)
			}
		}
		return found
	}
	var all []result
	for _, row := range rows {
		now := of(results, row.name)
		if len(now) == 0 {
			now = of(before, row.name)
		}
		all = append(all, now...)
	}
	return all, nil
}

// write keeps results. The chart and the table are made of nothing but them,
// so that a test can make them again from the JSON.
func (r report) write(results []result) error {
	if r.json != "" {
		b, err := json.MarshalIndent(results, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(r.json, append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	if r.chart != "" {
		if err := os.WriteFile(r.chart, []byte(chart(results)), 0o644); err != nil {
			return err
		}
	}
	if r.readme == "" {
		return nil
	}
	b, err := os.ReadFile(r.readme)
	if err != nil {
		return err
	}
	text, err := insert(string(b), table(results))
	if err != nil {
		return fmt.Errorf("%s: %w", r.readme, err)
	}
	return os.WriteFile(r.readme, []byte(text), 0o644)
}

// readResults reads what write kept as JSON.
func readResults(file string) ([]result, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var results []result
	if err := json.Unmarshal(b, &results); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return results, nil
}

// The table stands between these two lines of the README.
const (
	tableBegin = "<!-- make bench: begin -->\n"
	tableEnd   = "<!-- make bench: end -->\n"
)

// insert puts table between the two marks of text.
func insert(text, table string) (string, error) {
	before, rest, ok := strings.Cut(text, tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !ok || !ended {
		return "", errors.New("the two lines that mark the table are not there")
	}
	return before + tableBegin + table + tableEnd + after, nil
}

// table is the results in Markdown.
func table(results []result) string {
	var b strings.Builder
	b.WriteString("| row | figure | Wherry | controller-runtime | ratio | target | |\n|---|---|--:|--:|--:|--:|---|\n")
	for _, r := range results {
		figure := string(r.Unit)
		if !r.Exact {
			figure += " (" + r.Unit.kind() + ")"
		}
		target := ""
		if r.Target > 0 {
			target = fmt.Sprintf("%.2f", r.Target)
		}
		if r.Missing != "" {
			fmt.Fprintf(&b, "| %s | %s | | | | %s | %s |\n", r.Name, figure, target, r.Missing)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | **%.2f** | %s | %s |\n", r.Name, figure, short(r.Ours), short(r.Theirs), r.Ratio, target, r.verdict())
	}
	return b.String()
}

// short writes a figure with three digits that count, or all before the point.
func short(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}
