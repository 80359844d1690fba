// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

// WidgetKind is the custom kind that the cases use: namespaced, with a status sub-resource.
var WidgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

var configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// NewWidget makes an empty Widget.
func NewWidget() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(WidgetKind)
	return u
}

// WidgetDefinition is the CustomResourceDefinition of Widget.
func WidgetDefinition() *unstructured.Unstructured {
	object := map[string]any{"type": "object"}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object",
					"properties": map[string]any{
						"spec": map[string]any{"type": "object", "properties": map[string]any{
							"size":  map[string]any{"type": "integer"},
							"big":   map[string]any{"type": "integer", "format": "int64"},
							"extra": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
						}},
						"status": map[string]any{"type": "object", "properties": map[string]any{
							"phase": map[string]any{"type": "string"}, "parts": object,
						}},
					},
				}},
			}},
		},
	}}
}

// The fixtures take namespaces by what the case calls them.

func (r *Run) configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: r.meta(namespace, name), Data: map[string]string{"a": "1", "b": "2"}}
}

func (r *Run) widget(namespace, name string) *unstructured.Unstructured {
	u := NewWidget()
	u.SetNamespace(r.namespace(namespace))
	u.SetName(name)
	u.Object["spec"] = map[string]any{"size": int64(1)}
	return u
}

func (r *Run) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.namespace(namespace), Name: name}
}

func (r *Run) namespace(name string) string {
	if name == "" {
		return ""
	}
	return r.Name(name)
}

// pod is one that no server refuses. Its spec and most of its status are the server's to fill.
func (r *Run) pod(name string) *corev1.Pod {
	r.Hide("spec", "status.qosClass", "status.conditions", "status.observedGeneration")
	return &corev1.Pod{ObjectMeta: r.meta("a", name), Spec: corev1.PodSpec{
		Containers:                   []corev1.Container{{Name: "c", Image: "i"}},
		AutomountServiceAccountToken: ptr.To(false),
	}}
}

func (r *Run) replicaSet(name string, replicas int32) *appsv1.ReplicaSet {
	r.Hide("spec.template")
	return &appsv1.ReplicaSet{ObjectMeta: r.meta("a", name), Spec: appsv1.ReplicaSetSpec{
		Replicas: &replicas,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	}}
}

// form is one of the ways to hold an object.
type form struct {
	name string
	make func(r *Run, namespace, name string) client.Object
	gvk  schema.GroupVersionKind
}

// writeForms are those that can be created.
var writeForms = []form{
	{"typed", func(r *Run, ns, n string) client.Object { return r.configMap(ns, n) }, configMapKind},
	{"unstructured", func(r *Run, ns, n string) client.Object {
		return asUnstructured(r.configMap(ns, n))
	}, configMapKind},
	{"custom", func(r *Run, ns, n string) client.Object { return r.widget(ns, n) }, WidgetKind},
}

func asUnstructured(c *corev1.ConfigMap) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": c.Data["a"], "b": c.Data["b"]}}}
	u.SetGroupVersionKind(configMapKind)
	u.SetNamespace(c.Namespace)
	u.SetName(c.Name)
	return u
}

// metadata gives obj as metadata only.
func metadata(obj client.Object, gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	m.SetGroupVersionKind(gvk)
	return m
}

func merge(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }

func jsonPatch(patch string) client.Patch { return client.RawPatch(types.JSONPatchType, []byte(patch)) }

func strategic(patch string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType, []byte(patch))
}

// config makes an apply configuration.
func config(gvk schema.GroupVersionKind, obj client.Object, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(obj.GetNamespace())
	u.SetName(obj.GetName())
	return u
}

const longName = "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-g23456789-"

// requestPEM is a certificate request, for the one kind that does not exist without.
const requestPEM = `-----BEGIN CERTIFICATE REQUEST-----
MIHKMHECAQAwDzENMAsGA1UEAwwEY2FzZTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABM/riUKi91pGIKEam1CgEnUaEWE0G3984LUwTjANzK0jop2F3AnYmEj0fn/Z
hHKz/faBRy2eij4eeWLOKLcK/gWgADAKBggqhkjOPQQDAgNJADBGAiEA+ffCbzSH
IqOtOsEyrwveUAtcYWLkqeGstQETpOqY1rcCIQD1aVabCXhMm30XKGJwJP/mhn0K
gXLyXJcHp+n+ZkKNFQ==
-----END CERTIFICATE REQUEST-----
`
