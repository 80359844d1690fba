// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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
		targets: map[unit]float64{begin: 0.20, cpu: 0.4},
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
	var took, used [2][]float64
	for round := range rounds + 1 {
		for side, lib := range libs {
			wall, spent, err := firstReconcile(filepath.Join(dir, lib), server.URL)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", lib, err)
			}
			if round == 0 {
				continue // the file is read from disk
			}
			took[side], used[side] = append(took[side], wall), append(used[side], spent)
		}
	}
	return map[unit][2]float64{begin: {median(took[0]), median(took[1])}, cpu: {median(used[0]), median(used[1])}}, nil
}

// firstReconcile runs a program until it has reconciled, and tells how long that took and what CPU it used, in
// microseconds.
func firstReconcile(program, url string) (wall, spent float64, err error) {
	cmd := exec.Command(program, url)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	_, readErr := out.Read(make([]byte, 1))
	elapsed := time.Since(began)
	if err := cmd.Wait(); err != nil {
		return 0, 0, fmt.Errorf("%w: %s", err, complaint.String())
	}
	if readErr != nil {
		return 0, 0, readErr
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return float64(elapsed.Microseconds()), float64(used.Microseconds()), nil
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
