// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build etcd

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	storagetesting "k8s.io/apiserver/pkg/storage/testing"

	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

// kubernetesSide is set in the process that runs Kubernetes' benchmarks on one side, as only testing.Main runs
// benchmarks that have parts, and it ends the process.
const kubernetesSide = "STORAGEBENCH_SIDE"

// kubernetesRows runs the benchmarks of k8s.io/apiserver/pkg/storage/testing on both sides.
func kubernetesRows(scale int) ([]Row, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var results [2]map[string]float64
	var order []string
	for i, side := range []string{"ours", "etcd"} {
		cmd := exec.Command(exe, "-test.run=^$", "-test.bench=.", fmt.Sprintf("-test.benchtime=%dx", 10*scale))
		cmd.Env = append(os.Environ(), kubernetesSide+"="+side)
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("Kubernetes' benchmarks on %s: %w\n%s", side, err, out)
		}
		var names []string
		if results[i], names = parse(out); i == 0 {
			order = names
		}
	}
	var rows []Row
	for _, name := range order {
		if etcd, ok := results[1][name]; ok {
			rows = append(rows, cost("kubernetes: "+name, "ns", results[0][name], etcd, 0))
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("Kubernetes' benchmarks gave nothing")
	}
	return rows, nil
}

// runKubernetes is the main function of that process.
func runKubernetes(name string) {
	open := func() (*side, error) { return ours(file.Memory) }
	if name == "etcd" {
		open = func() (*side, error) { return etcd(false) }
	}
	data := storagetesting.PrepareBenchmarkData(10, 200, 100)
	on := func(run func(*testing.B, *side)) func(*testing.B) {
		return func(b *testing.B) {
			s, err := open()
			if err != nil {
				b.Fatal(err)
			}
			defer s.close()
			run(b, s)
		}
	}
	filled := func(run func(*testing.B, *side)) func(*testing.B) {
		return on(func(b *testing.B, s *side) {
			if err := storagetesting.PrecreateBenchmarkPods(background, s.storage, data); err != nil {
				b.Fatal(err)
			}
			run(b, s)
		})
	}
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, nil, []testing.InternalBenchmark{
		{Name: "BenchmarkWrite", F: on(func(b *testing.B, s *side) {
			storagetesting.RunBenchmarkWriteThroughput(background, b, s.storage, data, false, nil)
		})},
		{Name: "BenchmarkList", F: filled(func(b *testing.B, s *side) {
			storagetesting.RunBenchmarkStoreList(background, b, s.storage, data, false)
		})},
		{Name: "BenchmarkStats", F: filled(func(b *testing.B, s *side) {
			storagetesting.RunBenchmarkStoreStats(background, b, s.storage)
		})},
	}, nil)
}

// parse reads the lines of benchmarks: name, iterations, nanoseconds.
func parse(out []byte) (map[string]float64, []string) {
	results := make(map[string]float64)
	var order []string
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 4 || f[3] != "ns/op" {
			continue
		}
		if ns, err := strconv.ParseFloat(f[2], 64); err == nil {
			name := strings.TrimPrefix(f[0], "Benchmark")
			results[name] = ns
			order = append(order, name)
		}
	}
	return results, order
}
