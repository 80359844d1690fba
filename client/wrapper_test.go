// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// everyWrite calls each verb that writes and returns what was sent. owner, if not empty, is given to Apply.
func everyWrite(t *testing.T, s *server, c Client, owner FieldOwner) map[string]request {
	t.Helper()
	path := "/api/v1/namespaces/a/pods"
	s.on("POST "+path, protobuf(201, pod("p")))
	for _, sub := range []string{"", "/status", "/eviction"} {
		for _, method := range []string{"PUT ", "PATCH ", "POST "} {
			s.on(method+path+"/p"+sub, object(200, pod("p")))
		}
	}
	s.on("DELETE "+path+"/p", object(200, pod("p")))
	s.on("DELETE "+path, object(200, &corev1.PodList{}))
	obj := func() *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}} }
	config := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind("Pod")
		u.SetNamespace("a")
		u.SetName("p")
		return u
	}
	ctx, patch := t.Context(), RawPatch("application/merge-patch+json", []byte(`{}`))
	var applyOpts []ApplyOption
	var subApplyOpts []SubResourceApplyOption
	calls := map[string]func() error{
		"create":        func() error { return c.Create(ctx, obj()) },
		"create own":    func() error { return c.Create(ctx, obj(), FieldOwner("call")) },
		"update":        func() error { return c.Update(ctx, obj()) },
		"patch":         func() error { return c.Patch(ctx, obj(), patch) },
		"apply":         func() error { return c.Apply(ctx, ApplyConfigurationFromUnstructured(config()), applyOpts...) },
		"delete":        func() error { return c.Delete(ctx, obj()) },
		"delete all of": func() error { return c.DeleteAllOf(ctx, obj(), InNamespace("a")) },
		"sub create":    func() error { return c.SubResource("eviction").Create(ctx, obj(), obj()) },
		"sub update":    func() error { return c.Status().Update(ctx, obj()) },
		"sub patch":     func() error { return c.Status().Patch(ctx, obj(), patch) },
		"sub apply": func() error {
			return c.SubResource("status").Apply(ctx, ApplyConfigurationFromUnstructured(config()), subApplyOpts...)
		},
	}
	if owner != "" {
		applyOpts, subApplyOpts = append(applyOpts, owner), append(subApplyOpts, owner)
	}
	sent := map[string]request{}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sent[name] = s.last()
	}
	return sent
}

// A dry-run client makes every verb a dry run, whatever the call says.
func TestDryRunLayer(t *testing.T) {
	s := newServer(t)
	for name, r := range everyWrite(t, s, NewDryRunClient(s.client(Options{})), "me") {
		inQuery, inBody := strings.Contains(r.query, "dryRun=All"), strings.Contains(string(r.body), `"dryRun":["All"]`)
		if isDelete := r.method == http.MethodDelete; isDelete && !inBody || !isDelete && !inQuery {
			t.Errorf("%s is no dry run: %s %s", name, r.query, r.body)
		}
	}
	for name, r := range everyWrite(t, s, s.client(Options{DryRun: new(true)}), "me") {
		if !strings.Contains(r.query+string(r.body), "dryRun") {
			t.Errorf("Options.DryRun: %s is no dry run", name)
		}
	}
}

// The owner and validation of a layer are for calls that name none.
func TestFieldOwnerAndFieldValidationLayers(t *testing.T) {
	s := newServer(t)
	c := WithFieldValidation(WithFieldOwner(s.client(Options{}), "layer"), FieldValidation(metav1.FieldValidationStrict))
	byOptions := s.client(Options{FieldOwner: "layer", FieldValidation: metav1.FieldValidationStrict})
	for _, c := range []Client{c, byOptions} {
		for name, r := range everyWrite(t, s, c, "") {
			if r.method == http.MethodDelete {
				if r.query != "" {
					t.Errorf("%s: %s", name, r.query)
				}
				continue
			}
			owner := "fieldManager=layer"
			if name == "create own" {
				owner = "fieldManager=call"
			}
			if !strings.Contains(r.query, owner) {
				t.Errorf("%s: %s", name, r.query)
			}
			if strict := strings.Contains(r.query, "fieldValidation=Strict"); strict == strings.Contains(name, "apply") {
				t.Errorf("%s: %s", name, r.query)
			}
		}
	}
}

func TestNamespaceLayer(t *testing.T) {
	s := newServer(t)
	c := NewNamespacedClient(s.client(Options{}), "a").(WithWatch)
	s.on("GET /api/v1/namespaces/a/pods/p", protobuf(200, pod("p")))
	s.on("GET /api/v1/namespaces/a/pods", object(200, &corev1.PodList{}))
	s.on("GET /api/v1/nodes", object(200, &corev1.NodeList{}))
	s.on("GET /api/v1/nodes/n", protobuf(200, &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "n"}}))
	s.on("DELETE /api/v1/namespaces/a/pods", object(200, &corev1.PodList{}))
	s.on("PATCH /api/v1/namespaces/a/pods/p", object(200, pod("p")))
	s.on("PATCH /api/v1/namespaces/a/pods/p/status", object(200, pod("p")))
	ctx := t.Context()
	bare := func() *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}} }
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "b"}}
	config := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}}}
	otherConfig := config.DeepCopy()
	otherConfig.SetNamespace("b")
	for name, test := range map[string]struct {
		do   func() error
		path string // empty: refused without a request
	}{
		"get":                       {func() error { return c.Get(ctx, ObjectKey{Name: "p"}, bare()) }, "/api/v1/namespaces/a/pods/p"},
		"get elsewhere":             {func() error { return c.Get(ctx, ObjectKey{Namespace: "b", Name: "p"}, bare()) }, ""},
		"get a node":                {func() error { return c.Get(ctx, ObjectKey{Namespace: "a", Name: "n"}, &corev1.Node{}) }, "/api/v1/nodes/n"},
		"list":                      {func() error { return c.List(ctx, &corev1.PodList{}) }, "/api/v1/namespaces/a/pods"},
		"list elsewhere":            {func() error { return c.List(ctx, &corev1.PodList{}, InNamespace("b")) }, "/api/v1/namespaces/a/pods"},
		"list nodes":                {func() error { return c.List(ctx, &corev1.NodeList{}, InNamespace("a")) }, "/api/v1/nodes"},
		"delete all of":             {func() error { return c.DeleteAllOf(ctx, bare()) }, "/api/v1/namespaces/a/pods"},
		"apply":                     {func() error { return c.Apply(ctx, ApplyConfigurationFromUnstructured(config), FieldOwner("me")) }, "/api/v1/namespaces/a/pods/p"},
		"apply elsewhere":           {func() error { return c.Apply(ctx, ApplyConfigurationFromUnstructured(otherConfig), FieldOwner("me")) }, ""},
		"patch":                     {func() error { return c.Patch(ctx, bare(), Merge) }, "/api/v1/namespaces/a/pods/p"},
		"status":                    {func() error { return c.Status().Patch(ctx, bare(), Merge) }, "/api/v1/namespaces/a/pods/p/status"},
		"create elsewhere":          {func() error { return c.Create(ctx, other) }, ""},
		"update elsewhere":          {func() error { return c.Update(ctx, other) }, ""},
		"delete elsewhere":          {func() error { return c.Delete(ctx, other) }, ""},
		"sub-resource elsewhere":    {func() error { return c.SubResource("eviction").Create(ctx, other, bare()) }, ""},
		"sub-resource of elsewhere": {func() error { return c.Status().Update(ctx, other) }, ""},
		"nil":                       {func() error { return c.Create(ctx, (*corev1.Pod)(nil)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.do()
			sent := s.asked()
			if test.path == "" {
				if err == nil || len(sent) != 0 {
					t.Errorf("sent %v, %v", sent, err)
				}
				return
			}
			if err != nil || len(sent) != 1 || sent[0].path != test.path {
				t.Errorf("sent %v, %v, want %s", sent, err, test.path)
			}
		})
	}
	if config.GetNamespace() != "a" {
		t.Errorf("the namespace did not get into the apply configuration: %v", config)
	}
}
