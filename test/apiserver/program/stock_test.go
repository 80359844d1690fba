// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/wherry-dev/wherry/test/apiserver/server"
)

// TestSeedsAreWhatKubernetesWrites compares what this package writes before the start with what kube-apiserver's own
// start-up hooks write after it: every kind in full, both ways.
func TestSeedsAreWhatKubernetesWrites(t *testing.T) {
	ours := serve(t)
	stock := serve(t, func(o *server.Options) { o.Stock = true })
	for _, r := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "namespaces"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "prioritylevelconfigurations"},
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Resource: "flowschemas"},
	} {
		t.Run(r.Resource, func(t *testing.T) {
			want, got := contents(t, stock, r), contents(t, ours, r)
			if len(want) == 0 {
				t.Fatal("Kubernetes writes none: the comparison is void")
			}
			for name, text := range want {
				if got[name] != text {
					t.Errorf("%s is\n%s\nKubernetes writes\n%s", name, got[name], text)
				}
			}
			for name := range got {
				if want[name] == "" {
					t.Errorf("%s is there, and Kubernetes writes no such thing", name)
				}
			}
		})
	}
	t.Run("API resources", func(t *testing.T) {
		if want, got := resources(t, stock), resources(t, ours); !slices.Equal(want, got) {
			t.Errorf("%v\nKubernetes serves\n%v", got, want)
		}
	})
}

// contents returns all objects of a kind as text, by name, without what differs between any two servers.
func contents(t *testing.T, s *server.Server, r schema.GroupVersionResource) map[string]string {
	t.Helper()
	d, err := dynamic.NewForConfig(s.Config())
	must(t, err)
	list, err := d.Resource(r).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	out := map[string]string{}
	for _, item := range list.Items {
		made := item.GetCreationTimestamp()
		if item.GetUID() == "" || made.IsZero() || item.GetResourceVersion() == "" {
			t.Errorf("%s lacks a UID, a time or a version: %v", item.GetName(), item.Object["metadata"])
		}
		for _, field := range []string{"uid", "creationTimestamp", "resourceVersion", "managedFields"} {
			unstructured.RemoveNestedField(item.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(item.Object, "status", "conditions") // written later, with the time
		text, err := json.MarshalIndent(item.Object, "", " ")
		must(t, err)
		out[item.GetNamespace()+"/"+item.GetName()] = string(text)
	}
	return out
}

func resources(t *testing.T, s *server.Server) []string {
	t.Helper()
	_, lists, err := clientFor(t, s.Config()).Discovery().ServerGroupsAndResources()
	must(t, err)
	var out []string
	for _, l := range lists {
		for _, r := range l.APIResources {
			out = append(out, fmt.Sprintf("%s %s %s", l.GroupVersion, r.Name, strings.Join(r.Verbs, ",")))
		}
	}
	slices.Sort(out)
	return out
}
