// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// widget is a custom resource with a Go type.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Size int64 `json:"size,omitempty"`
	} `json:"spec,omitempty"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	out := *w
	out.ObjectMeta = *w.ObjectMeta.DeepCopy()
	return &out
}

type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []widget `json:"items"`
}

func (w *widgetList) DeepCopyObject() runtime.Object { out := *w; return &out }

var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func widgetScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(widgetKind, &widget{})
	s.AddKnownTypeWithName(apiutil.ListKind(widgetKind), &widgetList{})
	metav1.AddToGroupVersion(s, widgetKind.GroupVersion())
	_ = corev1.AddToScheme(s)
	_ = policyv1.AddToScheme(s)
	_ = autoscalingv1.AddToScheme(s)
	return s
}

// inForm makes an object of a kind in a form, with nothing in it but its key.
func inForm(t testing.TB, form string, kind schema.GroupVersionKind) Object {
	t.Helper()
	var obj Object
	switch {
	case form == "typed" && kind == widgetKind:
		obj = &widget{}
	case form == "typed":
		obj = &corev1.Pod{}
	case form == "unstructured":
		obj = &unstructured.Unstructured{}
	default:
		obj = &metav1.PartialObjectMetadata{}
	}
	if form != "typed" {
		obj.GetObjectKind().SetGroupVersionKind(kind)
	}
	obj.SetNamespace("a")
	obj.SetName("p")
	return obj
}

func listInForm(form string, kind schema.GroupVersionKind) ObjectList {
	var list ObjectList
	switch {
	case form == "typed" && kind == widgetKind:
		return &widgetList{}
	case form == "typed":
		return &corev1.PodList{}
	case form == "unstructured":
		list = &unstructured.UnstructuredList{}
	default:
		list = &metav1.PartialObjectMetadataList{}
	}
	list.GetObjectKind().SetGroupVersionKind(apiutil.ListKind(kind))
	return list
}

// Every verb in every form, for a built-in kind and a custom one, makes the request that the API wants and reads the
// answer into its target.
func TestEveryVerbInEveryForm(t *testing.T) {
	const merge = "application/merge-patch+json"
	podKind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	for _, kind := range []schema.GroupVersionKind{podKind, widgetKind} {
		all := "/api/v1/namespaces/a/pods"
		if kind == widgetKind {
			all = "/apis/example.com/v1/namespaces/a/widgets"
		}
		one := all + "/p"
		for _, form := range []string{"typed", "unstructured", "metadata"} {
			bodyType := jsonType
			if form == "typed" && kind == podKind {
				bodyType = protobufType
			}
			patch := RawPatch(types.MergePatchType, []byte(`{}`))
			for _, verb := range []struct {
				name, request, contentType string
				body                       bool // the body is an object, which the metadata form has not
				do                         func(c Client, obj Object) error
			}{
				{"get", "GET " + one, "", false, func(c Client, o Object) error { return c.Get(t.Context(), ObjectKeyFromObject(o), o) }},
				{"create", "POST " + all, bodyType, true, func(c Client, o Object) error { return c.Create(t.Context(), o) }},
				{"update", "PUT " + one, bodyType, true, func(c Client, o Object) error { return c.Update(t.Context(), o) }},
				{"patch", "PATCH " + one, merge, false, func(c Client, o Object) error { return c.Patch(t.Context(), o, patch) }},
				{"get sub", "GET " + one + "/x", "", false, func(c Client, o Object) error {
					return c.SubResource("x").Get(t.Context(), o, o)
				}},
				{"update status", "PUT " + one + "/status", bodyType, true, func(c Client, o Object) error { return c.Status().Update(t.Context(), o) }},
				{"patch status", "PATCH " + one + "/status", merge, false, func(c Client, o Object) error { return c.Status().Patch(t.Context(), o, patch) }},
				{"create sub", "POST " + one + "/x", bodyType, true, func(c Client, o Object) error { return c.SubResource("x").Create(t.Context(), o, o) }},
			} {
				t.Run(fmt.Sprintf("%s %s %s", form, kind.Kind, verb.name), func(t *testing.T) {
					s := newServer(t)
					s.on(verb.request, object(200, map[string]any{
						"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind,
						"metadata": map[string]any{"namespace": "a", "name": "p", "resourceVersion": "8"},
					}))
					obj := inForm(t, form, kind)
					err := verb.do(s.client(Options{Scheme: widgetScheme()}), obj)
					if form == "metadata" && verb.body {
						if err == nil || !strings.Contains(err.Error(), "metadata form") || len(s.asked()) != 0 {
							t.Fatalf("got %v", err)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					r := s.last()
					if r.header.Get("Content-Type") != verb.contentType {
						t.Errorf("Content-Type %q, want %q", r.header.Get("Content-Type"), verb.contentType)
					}
					if verb.contentType == jsonType && (!strings.Contains(string(r.body), `"kind":"`+kind.Kind+`"`) || !strings.Contains(string(r.body), `"apiVersion"`)) {
						t.Errorf("the body does not tell its kind: %s", r.body)
					}
					if obj.GetResourceVersion() != "8" {
						t.Errorf("the answer did not get into the object: %v", obj)
					}
					if want := kind; form != "typed" && obj.GetObjectKind().GroupVersionKind() != want {
						t.Errorf("kind %v", obj.GetObjectKind().GroupVersionKind())
					}
				})
			}
			t.Run(fmt.Sprintf("%s %s list and delete", form, kind.Kind), func(t *testing.T) {
				s := newServer(t)
				c := s.client(Options{Scheme: widgetScheme()})
				s.on("GET "+all, object(200, map[string]any{
					"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind + "List", "metadata": map[string]any{"resourceVersion": "9", "continue": "more"},
					"items": []any{map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": "p1"}}},
				}))
				s.on("DELETE "+one, object(200, map[string]any{"apiVersion": "v1", "kind": "Status", "status": "Success"}))
				s.on("DELETE "+all, object(200, map[string]any{"apiVersion": "v1", "kind": "PodList"}))
				list := listInForm(form, kind)
				if err := c.List(t.Context(), list, InNamespace("a"), MatchingLabels{"x": "y"}, Limit(1), MatchingFields{"metadata.name": "p1"}); err != nil {
					t.Fatal(err)
				}
				if q := s.last().query; q != "fieldSelector=metadata.name%3Dp1&labelSelector=x%3Dy&limit=1" {
					t.Errorf("query %s", q)
				}
				if list.GetContinue() != "more" || list.GetResourceVersion() != "9" {
					t.Errorf("list %v", list)
				}
				if m, ok := list.(*metav1.PartialObjectMetadataList); ok && (m.Items[0].Kind != kind.Kind || m.Kind != kind.Kind+"List") {
					t.Errorf("kinds %v", m)
				}
				obj := inForm(t, form, kind)
				obj.SetResourceVersion("1")
				if err := c.Delete(t.Context(), obj, Preconditions{UID: new(types.UID("u"))}, PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
					t.Fatal(err)
				}
				if r := s.last(); r.method+" "+r.path != "DELETE "+one || !strings.Contains(string(r.body), `"preconditions":{"uid":"u"},"propagationPolicy":"Foreground"`) {
					t.Errorf("sent %s %s %s", r.method, r.path, r.body)
				}
				if obj.GetResourceVersion() != "1" {
					t.Error("Delete changed the object")
				}
				if err := c.DeleteAllOf(t.Context(), obj, InNamespace("a"), MatchingLabels{"x": "y"}, GracePeriodSeconds(0)); err != nil {
					t.Fatal(err)
				}
				if r := s.last(); r.path != all || r.query != "labelSelector=x%3Dy" || !strings.Contains(string(r.body), `"gracePeriodSeconds":0`) {
					t.Errorf("sent %s %s %s", r.path, r.query, r.body)
				}
			})
		}
	}
}

// Sub-resources with a kind of their own.
func TestSubResourceBodies(t *testing.T) {
	s := newServer(t)
	c := s.client(Options{Scheme: widgetScheme()})
	base := "/apis/example.com/v1/namespaces/a/widgets/p/scale"
	scale := &autoscalingv1.Scale{TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: "autoscaling/v1"}, Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	s.on("GET "+base, object(200, scale))
	s.on("PUT "+base, object(200, scale))
	s.on("PATCH "+base, object(200, scale))
	parent := inForm(t, "unstructured", widgetKind)
	got := &autoscalingv1.Scale{}
	if err := c.SubResource("scale").Get(t.Context(), parent, got); err != nil || got.Spec.Replicas != 5 {
		t.Fatalf("get: %v, %v", got, err)
	}
	body := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
	s.asked()
	if err := c.SubResource("scale").Update(t.Context(), parent, WithSubResourceBody(body)); err != nil || body.Spec.Replicas != 5 {
		t.Fatalf("update: %v, %v", body, err)
	}
	if r := s.last(); r.header.Get("Content-Type") != protobufType {
		t.Errorf("Content-Type %s", r.header.Get("Content-Type"))
	}
	before := &autoscalingv1.Scale{}
	after := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	if err := c.SubResource("scale").Patch(t.Context(), parent, MergeFrom(before), WithSubResourceBody(after)); err != nil || after.Spec.Replicas != 5 {
		t.Fatalf("patch: %v, %v", after, err)
	}
	if r := s.last(); string(r.body) != `{"spec":{"replicas":3}}` {
		t.Errorf("patch %s", r.body)
	}
	// An eviction is answered with a Status: the eviction stays what it was.
	s.on("POST /api/v1/namespaces/a/pods/p/eviction", object(201, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"}))
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	if err := c.SubResource("eviction").Create(t.Context(), pod("p"), eviction); err != nil || eviction.Name != "p" {
		t.Errorf("eviction: %v, %v", eviction, err)
	}
	if r := s.last(); r.method != http.MethodPost {
		t.Errorf("%v", r)
	}
}

func TestApply(t *testing.T) {
	s := newServer(t)
	c := s.client(Options{})
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "a", "name": "p"},
		"spec": map[string]any{"size": int64(9007199254740993)},
	}}
	s.on("PATCH /apis/example.com/v1/namespaces/a/widgets/p", object(200, map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"namespace": "a", "name": "p", "resourceVersion": "3"},
	}))
	if err := c.Apply(t.Context(), ApplyConfigurationFromUnstructured(u), FieldOwner("me"), ForceOwnership); err != nil {
		t.Fatal(err)
	}
	r := s.last()
	if r.query != "fieldManager=me&force=true" || r.header.Get("Content-Type") != "application/apply-patch+yaml" || !strings.Contains(string(r.body), "9007199254740993") {
		t.Errorf("sent %s %s %s", r.query, r.header, r.body)
	}
	if u.GetResourceVersion() != "3" || u.Object["spec"] != nil {
		t.Errorf("the answer did not replace the configuration: %v", u)
	}
}

// A list in protobuf has exactly the items that were sent, and none at all is nil as without room made for them.
func TestProtobufLists(t *testing.T) {
	s := newServer(t)
	c := s.client(Options{})
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
	got := &corev1.PodList{Items: make([]corev1.Pod, 7)}
	for _, n := range []int{3, 0, 1} {
		list.Items = nil
		for i := range n {
			list.Items = append(list.Items, *pod(fmt.Sprint("p", i)))
			list.Items[i].TypeMeta = metav1.TypeMeta{}
		}
		s.on("GET /api/v1/pods", protobuf(200, list))
		if err := c.List(t.Context(), got); err != nil || got.ResourceVersion != "5" || !equality.Semantic.DeepEqual(got.Items, list.Items) || (got.Items == nil) != (n == 0) {
			t.Errorf("%d items: %v, %v", n, got, err)
		}
	}
}

// TestDeleteInEveryForm wants the object that a delete is answered with in the words that its keeper reads fastest, and a
// refusal in protobuf to be understood.
func TestDeleteInEveryForm(t *testing.T) {
	u, m := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	for _, o := range []Object{u, m} {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
		o.SetNamespace("a")
		o.SetName("p")
	}
	for name, test := range map[string]struct {
		obj    Object
		accept string
	}{
		"typed":        {pod("p"), protobufType + "," + jsonType},
		"unstructured": {u, jsonType},
		"metadata":     {m, jsonType},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			const request = "DELETE /api/v1/namespaces/a/pods/p"
			s.on(request, protobuf(200, pod("p")))
			c := s.client(Options{})
			if err := c.Delete(t.Context(), test.obj); err != nil {
				t.Error(err)
			}
			if got := s.last().header.Get("Accept"); got != test.accept {
				t.Errorf("Accept %q, want %q", got, test.accept)
			}
			s.on(request, protobuf(409, &metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
				Status:   metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict, Message: "another UID",
			}))
			if err := c.Delete(t.Context(), test.obj); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "another UID") {
				t.Errorf("the refusal is %v", err)
			}
		})
	}
}
