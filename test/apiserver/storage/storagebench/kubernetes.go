// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build etcd

package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// kubernetesRows runs the benchmarks of k8s.io/apiserver/pkg/storage/testing on both sides.
func kubernetesRows(scale int) ([]Row, error) {
	testing.Init()
	if err := flag.Set("test.benchtime", fmt.Sprintf("%dx", 10*scale)); err != nil {
		return nil, err
	}
	data := storagetesting.PrepareBenchmarkData(10, 20*scale, 100)
	var results [2]map[string]float64
	var order []string
	sides, err := both()
	if err != nil {
		return nil, err
	}
	defer closeAll(sides)
	for i, s := range sides {
		out, err := capture(func() {
			testing.RunBenchmarks(func(string, string) (bool, error) { return true, nil }, []testing.InternalBenchmark{
				{Name: "Write", F: func(b *testing.B) {
					storagetesting.RunBenchmarkWriteThroughput(background, b, s.storage, data, false, nil)
				}},
				{Name: "List", F: func(b *testing.B) { storagetesting.RunBenchmarkStoreList(background, b, s.storage, data, false) }},
				{Name: "Stats", F: func(b *testing.B) { storagetesting.RunBenchmarkStoreStats(background, b, s.storage) }},
			})
		})
		if err != nil {
			return nil, err
		}
		var names []string
		if results[i], names = parse(out); i == 0 {
			order = names
		}
	}
	var rows []Row
	for _, name := range order {
		if etcd, ok := results[1][name]; ok {
			rows = append(rows, cost("kubernetes "+name, "ns/op", results[0][name], etcd, 0))
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("Kubernetes' benchmarks gave nothing")
	}
	return rows, nil
}

// capture gives what f prints.
func capture(f func()) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	stdout := os.Stdout
	os.Stdout = w
	done := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		done <- string(b)
	}()
	f()
	os.Stdout = stdout
	w.Close()
	return <-done, nil
}

// parse reads the lines of benchmarks: name, iterations, nanoseconds.
func parse(out string) (map[string]float64, []string) {
	results := make(map[string]float64)
	var order []string
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || f[3] != "ns/op" {
			continue
		}
		if ns, err := strconv.ParseFloat(f[2], 64); err == nil {
			results[f[0]] = ns
			order = append(order, f[0])
		}
	}
	return results, order
}
