// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"testing"

	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// The benchmarks of Kubernetes' own storage tests. ../storagebench runs them against etcd3.

func benchData() storagetesting.BenchmarkData {
	return storagetesting.PrepareBenchmarkData(10, 200, 100)
}

func newBenchmark(b *testing.B) *bench {
	s, err := Open(Options{Mode: Memory})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return newBenchOn(b, s)
}

func BenchmarkStoreWriteThroughput(b *testing.B) {
	s := newBenchmark(b)
	storagetesting.RunBenchmarkWriteThroughput(s.ctx, b, s, benchData(), false, nil)
}

func BenchmarkStoreList(b *testing.B) {
	s, data := newBenchmark(b), benchData()
	if err := storagetesting.PrecreateBenchmarkPods(s.ctx, s, data); err != nil {
		b.Fatal(err)
	}
	storagetesting.RunBenchmarkStoreList(s.ctx, b, s, data, false)
}

func BenchmarkStoreStats(b *testing.B) {
	s := newBenchmark(b)
	if err := storagetesting.PrecreateBenchmarkPods(s.ctx, s, benchData()); err != nil {
		b.Fatal(err)
	}
	storagetesting.RunBenchmarkStoreStats(s.ctx, b, s)
}
