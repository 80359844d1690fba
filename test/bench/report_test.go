// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var sampleResults = []result{
	{Name: "cache: Get", Unit: bytes, Exact: true, Ours: 7700, Theirs: 9000, Ratio: 0.8556, Target: 0.86, Hit: true},
	{Name: "queue: <distinct>", Unit: cpu, Ours: 1.25, Theirs: 5, Ratio: 0.25, Target: 0.2},
	{Name: "queue: slow", Unit: p99, Ours: 30, Theirs: 10, Ratio: 3},
	{Name: "cache: List", Unit: instr, Exact: true, Target: 0.5, Missing: "not measured: valgrind is not installed"},
}

func TestTable(t *testing.T) {
	want := `| row | figure | Wherry | controller-runtime | ratio | target | |
|---|---|--:|--:|--:|--:|---|
| cache: Get | B/op | 7700 | 9000 | **0.86** | 0.86 | hit |
| queue: <distinct> | CPU/op (timed) | 1.25 | 5.00 | **0.25** | 0.20 | miss |
| queue: slow | p99 us (timed) | 30.0 | 10.0 | **3.00** |  |  |
| cache: List | instr/op | | | | 0.50 | not measured: valgrind is not installed |
`
	if got := table(sampleResults); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestChartIsXML(t *testing.T) {
	svg := chart(sampleResults)
	bars := 0
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "rect" {
			bars++
		}
	}
	if bars != len(sampleResults)-1 { // one was not measured
		t.Errorf("%d bars for %d results", bars, len(sampleResults)-1)
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	to := report{json: filepath.Join(dir, "r.json"), chart: filepath.Join(dir, "r.svg"), readme: filepath.Join(dir, "README.md")}
	if err := os.WriteFile(to.readme, []byte("before\n"+tableBegin+"old\n"+tableEnd+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second run finds what the first left
		if err := to.write(sampleResults); err != nil {
			t.Fatal(err)
		}
	}
	again, err := readResults(to.json)
	if err != nil {
		t.Fatal(err)
	}
	if table(again) != table(sampleResults) || chart(again) != chart(sampleResults) {
		t.Error("what is read back makes another table or chart")
	}
	got, err := os.ReadFile(to.readme)
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n" + tableBegin + table(sampleResults) + tableEnd + "after\n"; string(got) != want {
		t.Errorf("README is\n%s\nwant\n%s", got, want)
	}
	if err := os.WriteFile(to.readme, []byte("no marks"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := to.write(sampleResults); err == nil {
		t.Error("a README without the marks was accepted")
	}
}

// Without valgrind a row says that its instructions are not measured, and measures the rest.
func TestNotMeasured(t *testing.T) {
	t.Setenv("PATH", "")
	nothing := func() (work, error) { return func(int) error { return nil }, nil }
	r := row{name: "nothing", n: 1, targets: map[unit]float64{bytes: 0}, ours: nothing, theirs: nothing}.counting(1, 0.5)
	got, err := r.measure(1)
	if err != nil || len(got) != 2 || got[0].Unit != instr || !strings.Contains(got[0].Missing, "valgrind") || got[1].Unit != bytes {
		t.Errorf("%v, %v", got, err)
	}
}

// TestPagesShowTheResults: chart and README are those of the results that are
// kept.
func TestPagesShowTheResults(t *testing.T) {
	root := filepath.Join("..", "..")
	results, err := readResults(filepath.Join(root, "docs", "bench.json"))
	if err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(filepath.Join(root, "docs", "bench.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if string(svg) != chart(results) {
		t.Error("docs/bench.svg is not the chart of docs/bench.json: draw it again with -from")
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), tableBegin+table(results)+tableEnd) {
		t.Error("README.md does not show the table of docs/bench.json: write it again with -from")
	}
}

// A run of some rows leaves what is known of the others, in the order of the rows, and drops what is no row any more.
func TestKeep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	rows := []row{{name: "first"}, {name: "second"}, {name: "third"}}
	to := report{json: file, keep: true}
	before := []result{{Name: "gone", Unit: cpu, Ours: 9}, {Name: "second", Unit: cpu, Ours: 2}, {Name: "third", Unit: cpu, Ours: 3}, {Name: "third", Unit: bytes, Ours: 30}}
	if err := to.write(before); err != nil {
		t.Fatal(err)
	}
	now := []result{{Name: "third", Unit: cpu, Ours: 33}, {Name: "first", Unit: cpu, Ours: 1}}
	want := []result{now[1], before[1], now[0]}
	if got, err := to.merge(now, rows); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	to.keep = false
	if got, err := to.merge(now, rows); err != nil || !slices.Equal(got, now) {
		t.Errorf("without -keep: %v, %v; want %v", got, err, now)
	}
	if _, err := (report{keep: true}).merge(now, rows); err == nil {
		t.Error("-keep without -json was accepted")
	}
}

// A figure that the system does not give is shown as missing, not left out.
func TestMissingFigure(t *testing.T) {
	r := row{name: "half", targets: map[unit]float64{cpu: 0.5, peak: 0.5}, fixed: func(int) (map[unit][2]float64, error) {
		return map[unit][2]float64{cpu: {1, 4}}, nil
	}}
	got, err := r.measure(1)
	if err != nil || len(got) != 2 || !got[0].Hit || got[1].Unit != peak || got[1].Missing == "" || got[1].Hit {
		t.Errorf("%v, %v", got, err)
	}
}
