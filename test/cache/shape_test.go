// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// shape is one kind in one form.
type shape struct {
	kind schema.GroupVersionKind
	form apiutil.Form
}

var (
	configMapKind   = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	podKind         = corev1.SchemeGroupVersion.WithKind("Pod")
	clusterRoleKind = rbacv1.SchemeGroupVersion.WithKind("ClusterRole")
)

// shapes returns kinds in every form.
func shapes(kinds ...schema.GroupVersionKind) (all []shape) {
	for _, kind := range kinds {
		for _, form := range []apiutil.Form{apiutil.Typed, apiutil.Unstructured, apiutil.Metadata} {
			all = append(all, shape{kind, form})
		}
	}
	return all
}

func (s shape) String() string { return s.form.String() + " " + s.kind.Kind }

// object makes an object of the shape with a name and labels, given as key and value in turns.
func (s shape) object(ns, name string, labels ...string) client.Object {
	var obj client.Object
	switch s.form {
	case apiutil.Unstructured:
		obj = &unstructured.Unstructured{}
	case apiutil.Metadata:
		obj = &metav1.PartialObjectMetadata{}
	default:
		obj = s.typed()
	}
	if s.form != apiutil.Typed {
		obj.GetObjectKind().SetGroupVersionKind(s.kind)
	}
	obj.SetNamespace(ns)
	obj.SetName(name)
	if len(labels) > 0 {
		all := map[string]string{}
		for pair := range slices.Chunk(labels, 2) {
			all[pair[0]] = pair[1]
		}
		obj.SetLabels(all)
	}
	return obj
}

// typed makes an empty typed object of the kind, whatever the form.
func (s shape) typed() client.Object {
	obj, err := scheme.New(s.kind)
	if err != nil {
		panic(err) // every kind used here is in the scheme
	}
	return obj.(client.Object)
}

// whole is a typed object of the kind that a server takes, whatever the form: metadata alone cannot be created.
func (s shape) whole(ns, name string, labels ...string) client.Object {
	return shape{s.kind, apiutil.Typed}.object(ns, name, labels...)
}

func (s shape) list() client.ObjectList {
	var list client.ObjectList
	switch s.form {
	case apiutil.Unstructured:
		list = &unstructured.UnstructuredList{}
	case apiutil.Metadata:
		list = &metav1.PartialObjectMetadataList{}
	default:
		obj, err := scheme.New(apiutil.ListKind(s.kind))
		if err != nil {
			panic(err)
		}
		return obj.(client.ObjectList)
	}
	list.GetObjectKind().SetGroupVersionKind(apiutil.ListKind(s.kind))
	return list
}

// keys returns what a list holds, as "namespace/name", with "!" behind what is being deleted. Of objects that the
// server makes by itself nothing is told.
func keys(t *testing.T, list client.ObjectList) (out []string) {
	t.Helper()
	items, err := meta.ExtractList(list)
	must(t, err)
	for _, item := range items {
		obj := item.(client.Object)
		if obj.GetName() == "kube-root-ca.crt" {
			continue
		}
		key := client.ObjectKeyFromObject(obj).String()
		if obj.GetDeletionTimestamp() != nil {
			key += "!"
		}
		out = append(out, key)
	}
	return out
}

// listed lists the shape and returns what keys tells.
func (s shape) listed(t *testing.T, r client.Reader, opts ...client.ListOption) []string {
	t.Helper()
	list := s.list()
	if err := r.List(t.Context(), list, opts...); err != nil {
		t.Fatalf("list %s: %v", s, err)
	}
	return keys(t, list)
}

// there reports whether a reader finds an object.
func (s shape) there(t *testing.T, r client.Reader, ns, name string) bool {
	t.Helper()
	err := r.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, s.object("", ""))
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("get %s %s/%s: %v", s, ns, name, err)
	}
	return err == nil
}

// want compares lists of keys; which of the two orders they have does not matter.
func want(t *testing.T, what string, got []string, wanted ...string) {
	t.Helper()
	got, wanted = slices.Clone(got), slices.Clone(wanted)
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}
