// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build etcd

package program_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	loadRounds  = 3
	loadClients = 8
	loadEach    = 150 // operations of each client in one measurement
	// loadCPU is the most server CPU an operation may take, as a part of what it takes with etcd.
	loadCPU = 0.70
	// noFsync is a variable that makes the etcd in the process not wait for the disk.
	noFsync = "WHERRY_ETCD_NO_FSYNC"
)

// loadEncodings are the encodings and the least throughput in each, as a multiple of that with etcd.
var loadEncodings = []struct {
	name, media string
	want        float64
}{
	{"protobuf", runtime.ContentTypeProtobuf, 1.25},
	{"JSON", runtime.ContentTypeJSON, 1.45},
}

// loadServers are what is measured. None runs controllers, for kube-apiserver has none.
var loadServers = []struct {
	name string
	args []string
}{
	{"etcd", []string{"--storage", "memory", "--stock", "--etcd", "--without", "all"}},
	{"etcd, no fsync", []string{"--storage", "memory", "--stock", "--etcd", "--without", "all"}},
	{"durable", []string{"--storage", "durable", "--without", "all"}},
	{"memory", []string{"--storage", "memory", "--without", "all"}},
}

// loadPairs are ours against theirs.
var loadPairs = [][2]string{{"durable", "etcd"}, {"memory", "etcd"}, {"memory", "etcd, no fsync"}}

var loadOperations = []string{"create", "get", "update"}

// load is what is measured, and rate what came of it.
type load struct{ server, encoding, operation string }

type rate struct {
	perSecond float64
	cpu       time.Duration // of the server, for one operation
}

// TestThroughputAgainstEtcd compares operations on small objects by several clients over HTTP, by the medians. All
// servers run for the whole time and are loaded in turn, so what the machine does besides meets all alike.
func TestThroughputAgainstEtcd(t *testing.T) {
	servers := map[string]*process{}
	for _, s := range loadServers {
		args := s.args
		if s.name == "durable" {
			args = append(slices.Clone(args), "--data-dir", t.TempDir())
		}
		quick := ""
		if s.name == "etcd, no fsync" {
			quick = "1"
		}
		must(t, os.Setenv(noFsync, quick))
		servers[s.name] = start(t, args...)
	}
	must(t, os.Unsetenv(noFsync))
	rates := map[load][]rate{}
	clients := map[load][]typed.ConfigMapInterface{}
	for _, e := range loadEncodings {
		for _, s := range loadServers {
			eventually(t, startLimit, func() string { // Kubernetes makes it after it is ready
				return text(second(servers[s.name].client(t).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})))
			})
			clients[load{s.name, e.name, ""}] = loadClientsOf(t, servers[s.name], e.media)
		}
	}
	for round := range loadRounds + 1 {
		each := loadEach
		if round == 0 {
			each /= 3 // it only warms up
		}
		order := slices.Clone(loadServers)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, e := range loadEncodings {
			for _, s := range order {
				got := measureLoad(t, servers[s.name], clients[load{s.name, e.name, ""}], fmt.Sprintf("%s-%d", strings.ToLower(e.name), round), each)
				for i, operation := range loadOperations {
					if round > 0 {
						at := load{s.name, e.name, operation}
						rates[at] = append(rates[at], got[i])
					}
				}
			}
		}
	}
	report(t, rates)
}

// loadClientsOf returns clients that speak an encoding, each with a connection of its own.
func loadClientsOf(t *testing.T, p *process, media string) []typed.ConfigMapInterface {
	t.Helper()
	clients := make([]typed.ConfigMapInterface, loadClients)
	for i := range clients {
		config := p.config(t)
		config.ContentType, config.AcceptContentTypes = media, media
		config.Dial = (&net.Dialer{}).DialContext // with the same one, all would share a connection
		clients[i] = clientFor(t, config).CoreV1().ConfigMaps("default")
	}
	return clients
}

// measureLoad makes, gets and updates objects, and returns the three rates.
func measureLoad(t *testing.T, p *process, clients []typed.ConfigMapInterface, prefix string, each int) []rate {
	t.Helper()
	made := make([][]*core.ConfigMap, loadClients)
	for i := range made {
		made[i] = make([]*core.ConfigMap, each)
	}
	var out []rate
	for _, do := range []func(ctx context.Context, client, i int) error{
		func(ctx context.Context, client, i int) (err error) {
			m := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d-%d", prefix, client, i)},
				Data: map[string]string{"k": strings.Repeat("v", 150)}} // some 200 bytes as a whole
			made[client][i], err = clients[client].Create(ctx, m, metav1.CreateOptions{})
			return err
		},
		func(ctx context.Context, client, i int) error {
			m, err := clients[client].Get(ctx, made[client][i].Name, metav1.GetOptions{})
			if err == nil && m.UID != made[client][i].UID {
				return fmt.Errorf("%s is another object", m.Name)
			}
			return err
		},
		func(ctx context.Context, client, i int) error {
			m := made[client][i]
			m.Data["k"] = strings.Repeat("w", 150)
			_, err := clients[client].Update(ctx, m, metav1.UpdateOptions{})
			return err
		},
	} {
		out = append(out, measureOperations(t, p, each, do))
	}
	return out
}

// measureOperations runs an operation so often by each client, all clients at once.
func measureOperations(t *testing.T, p *process, each int, do func(ctx context.Context, client, i int) error) rate {
	t.Helper()
	errs := make([]error, loadClients)
	var all sync.WaitGroup
	before, begun := measure(t, p.cmd.Process.Pid), time.Now()
	for client := range loadClients {
		all.Go(func() {
			for i := 0; i < each && errs[client] == nil; i++ {
				errs[client] = do(t.Context(), client, i)
			}
		})
	}
	all.Wait()
	took, after := time.Since(begun), measure(t, p.cmd.Process.Pid)
	must(t, errors.Join(errs...))
	n := loadClients * each
	return rate{perSecond: float64(n) / took.Seconds(), cpu: (after.cpu - before.cpu) / time.Duration(n)}
}

// report prints the table of ratios, and fails for those that miss what they are held to.
func report(t *testing.T, rates map[load][]rate) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "medians of %d, %d clients\n", loadRounds, loadClients)
	fmt.Fprintf(&b, "| ours / theirs | encoding | operation | ops/s | ratio | wanted | server CPU | ratio | wanted |\n|%s\n", strings.Repeat("---|", 9))
	for _, pair := range loadPairs {
		for _, e := range loadEncodings {
			for _, operation := range loadOperations {
				ours, theirs := middle(rates[load{pair[0], e.name, operation}]), middle(rates[load{pair[1], e.name, operation}])
				faster, cpu := ours.perSecond/theirs.perSecond, ours.cpu.Seconds()/theirs.cpu.Seconds()
				fmt.Fprintf(&b, "| %s / %s | %s | %s | %.0f / %.0f | **%.2f** | >= %.2f | %d / %d us | **%.2f** | <= %.2f |\n",
					pair[0], pair[1], e.name, operation, ours.perSecond, theirs.perSecond, faster, e.want,
					ours.cpu.Microseconds(), theirs.cpu.Microseconds(), cpu, loadCPU)
				if faster < e.want || cpu > loadCPU {
					t.Errorf("%s %s, %s against %s: throughput %.2f, CPU %.2f; want at least %.2f, at most %.2f",
						e.name, operation, pair[0], pair[1], faster, cpu, e.want, loadCPU)
				}
			}
		}
	}
	t.Log(b.String())
}

// middle is the median of each figure by itself.
func middle(list []rate) rate {
	var perSecond []float64
	var cpu []time.Duration
	for _, r := range list {
		perSecond, cpu = append(perSecond, r.perSecond), append(cpu, r.cpu)
	}
	slices.Sort(perSecond)
	slices.Sort(cpu)
	return rate{perSecond[len(perSecond)/2], cpu[len(cpu)/2]}
}
