// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// startRows are a process of each library from its start to its first reconcile, the median of some.
func startRows() []row {
	return []row{{
		name:    "start: process to first reconcile (< 50,000)",
		targets: map[unit]float64{begin: 0.20, cpu: 0.4, peak: 0.5},
		fixed:   startToReconcile,
	}}
}

// startToReconcile runs the programs below start/ in turns, against one server on the loopback.
func startToReconcile(rounds int) (map[unit][2]float64, error) {
	server := httptest.NewServer(http.HandlerFunc(serveNamespace))
	defer server.Close()
	dir, err := os.MkdirTemp("", "start")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	libs := []string{"ours", "theirs"}
	for _, lib := range libs {
		pkg := "./start/" + lib
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, lib), pkg).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", pkg, err, out)
		}
	}
	samples := map[unit]*[2][]float64{begin: {}, cpu: {}, peak: {}}
	for round := range rounds + 1 {
		for side, lib := range libs {
			one, err := firstReconcile(filepath.Join(dir, lib), server.URL)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", lib, err)
			}
			if round == 0 {
				continue // the file is read from disk
			}
			for u, v := range one {
				samples[u][side] = append(samples[u][side], v)
			}
		}
	}
	figures := map[unit][2]float64{}
	for u, both := range samples {
		if len(both[0]) > 0 && len(both[1]) > 0 {
			figures[u] = [2]float64{median(both[0]), median(both[1])}
		}
	}
	return figures, nil
}

// idleFor is how long a process is left alone after its first reconcile before its memory is looked at.
const idleFor = 200 * time.Millisecond

// firstReconcile runs a program until it has reconciled, leaves it idle, and ends it. It tells how long the start took,
// what CPU the process used, and, where the system says so, the most memory it had.
func firstReconcile(program, url string) (map[unit]float64, error) {
	cmd := exec.Command(program, url)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	hold, err := cmd.StdinPipe() // the program ends when this does
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, readErr := out.Read(make([]byte, 1))
	figures := map[unit]float64{begin: float64(time.Since(began).Microseconds())}
	time.Sleep(idleFor)
	most, peakErr := peakMemory(cmd.Process.Pid)
	if peakErr == nil {
		figures[peak] = most
	}
	_ = hold.Close() // it fails only if the program has ended, which Wait tells better
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, complaint.String())
	}
	if readErr != nil {
		return nil, readErr
	}
	if peakErr != nil && !errors.Is(peakErr, errNotMeasured) {
		return nil, peakErr
	}
	figures[cpu] = float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Microseconds())
	return figures, nil
}

var highWater = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peakMemory is the most memory a living process has had, in MB. What wait(2) tells of an ended one is no use here: Linux
// counts the parent's pages too, up to the exec.
func peakMemory(pid int) (float64, error) {
	if goruntime.GOOS != "linux" {
		return 0, errNotMeasured
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	m := highWater.FindSubmatch(status)
	if m == nil {
		return 0, fmt.Errorf("process %d has no memory: it ended too soon", pid)
	}
	kB, err := strconv.ParseFloat(string(m[1]), 64)
	return kB * 1024 / 1e6, err
}

// serveNamespace is an API server with one namespace: aggregated discovery, a list, and a watch that streams its first
// state and then is silent. It answers in JSON, which both libraries take.
func serveNamespace(w http.ResponseWriter, req *http.Request) {
	ns := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "1", ResourceVersion: "5"}}
	q := req.URL.Query()
	switch {
	case req.URL.Path == "/api":
		resource := apidiscovery.APIResourceDiscovery{Resource: "namespaces", SingularResource: "namespace", Scope: apidiscovery.ScopeCluster,
			ResponseKind: &metav1.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Verbs: []string{"get", "list", "watch"}}
		discovered(w, apidiscovery.APIGroupDiscovery{Versions: []apidiscovery.APIVersionDiscovery{
			{Version: "v1", Freshness: apidiscovery.DiscoveryFreshnessCurrent, Resources: []apidiscovery.APIResourceDiscovery{resource}},
		}})
	case req.URL.Path == "/apis":
		discovered(w)
	case req.URL.Path == "/api/v1/namespaces" && q.Get("watch") == "":
		answer(w, typeJSON, &corev1.NamespaceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.Namespace{*ns}})
	case req.URL.Path == "/api/v1/namespaces":
		w.Header().Set("Content-Type", typeJSON)
		if q.Get("sendInitialEvents") == "true" {
			mark := ns.DeepCopy()
			mark.ObjectMeta = metav1.ObjectMeta{ResourceVersion: "5", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
			event(w, "ADDED", ns)
			event(w, "BOOKMARK", mark)
		}
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	default:
		http.NotFound(w, req)
	}
}

func discovered(w http.ResponseWriter, groups ...apidiscovery.APIGroupDiscovery) {
	answer(w, typeJSON+";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", &apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}, Items: groups,
	})
}

func answer(w http.ResponseWriter, contentType string, obj any) {
	w.Header().Set("Content-Type", contentType)
	_ = json.NewEncoder(w).Encode(obj) // a client that has gone is no failure
}

func event(w http.ResponseWriter, what string, obj runtime.Object) {
	_ = json.NewEncoder(w).Encode(map[string]any{"type": what, "object": obj})
}
