// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build etcd

package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Row is one line of the table: a figure of ours, the same of etcd3, and the ratio.
type Row struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Ours   float64 `json:"ours"`
	Etcd   float64 `json:"etcd"`
	Ratio  float64 `json:"ratio"`            // ours by etcd's; above 1 is better for rates, below 1 for costs
	Target string  `json:"target,omitempty"` // what the project asks for
	Met    bool    `json:"met"`
}

// Report is what -json writes.
type Report struct {
	When time.Time `json:"when"`
	Go   string    `json:"go"`
	CPUs int       `json:"cpus"`
	Load string    `json:"load"` // of the machine when the run began
	Rows []Row     `json:"rows"`
}

func main() {
	klog.SetLogger(logr.Discard())
	if side := os.Getenv(kubernetesSide); side != "" {
		runKubernetes(side)
	}
	file := flag.String("json", "", "write the figures to this file too")
	quick := flag.Bool("quick", false, "a tenth of the work")
	kubernetes := flag.Bool("kubernetes", true, "run Kubernetes' own storage benchmarks too")
	flag.Parse()
	load, _ := os.ReadFile("/proc/loadavg")
	rep := Report{When: time.Now().UTC(), Go: runtime.Version(), CPUs: runtime.NumCPU(), Load: string(load)}
	scale := 10
	if *quick {
		scale = 1
	}
	add := func(rows []Row, err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "storagebench:", err)
			os.Exit(1)
		}
		for _, r := range rows {
			fmt.Fprintf(os.Stderr, "%s: %.2fx\n", r.Name, r.Ratio)
		}
		rep.Rows = append(rep.Rows, rows...)
	}
	for _, measure := range []func(int) ([]Row, error){writeRows, durableRows, readRows, fanOutRows, reopenRow} {
		add(measure(scale))
	}
	if *kubernetes {
		add(kubernetesRows(scale))
	}
	print(os.Stdout, rep.Rows)
	if *file == "" {
		return
	}
	data, err := json.MarshalIndent(rep, "", "  ")
	if err == nil {
		err = os.WriteFile(*file, append(data, '\n'), 0o644)
	}
	if err != nil {
		add(nil, err)
	}
}

// rate makes a row in which more is better.
func rate(name, unit string, ours, etcd, least float64) Row {
	r := Row{Name: name, Unit: unit, Ours: ours, Etcd: etcd, Ratio: ours / etcd, Met: true}
	if least > 0 {
		r.Target, r.Met = fmt.Sprintf(">= %.1fx", least), r.Ratio >= least
	}
	return r
}

// cost makes a row in which less is better.
func cost(name, unit string, ours, etcd, most float64) Row {
	r := Row{Name: name, Unit: unit, Ours: ours, Etcd: etcd, Ratio: ours / etcd, Met: true}
	if most > 0 {
		r.Target, r.Met = fmt.Sprintf("<= %.1fx", most), r.Ratio <= most
	}
	return r
}

func print(w io.Writer, rows []Row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "what\tunit\tours\tetcd3\tratio\ttarget\t")
	for _, r := range rows {
		mark := ""
		if !r.Met {
			mark = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%s\t%.4g\t%.4g\t%.2fx\t%s\t%s\n", r.Name, r.Unit, r.Ours, r.Etcd, r.Ratio, r.Target, mark)
	}
	t.Flush()
	missed := slices.IndexFunc(rows, func(r Row) bool { return !r.Met })
	if missed < 0 {
		fmt.Fprintln(w, "every target met")
	}
}
