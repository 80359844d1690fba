// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// byValue is an object that is no pointer.
type byValue struct{ *corev1.Pod }

func (b byValue) DeepCopyObject() runtime.Object { return b }

func TestBadInput(t *testing.T) {
	twice := runtime.NewScheme()
	twice.AddKnownTypeWithName(widgetKind, &widget{})
	twice.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}, &widget{})
	unknown := &unstructured.Unstructured{}
	unknown.SetGroupVersionKind(schema.GroupVersionKind{Group: "nowhere.io", Version: "v1", Kind: "Thing"})
	unknown.SetName("t")
	nameless := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	named := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	ctx := t.Context()
	for name, test := range map[string]struct {
		scheme *runtime.Scheme
		do     func(c WithWatch) error
		is     func(error) bool // nil: any error
		says   string
	}{
		"nil interface": {nil, func(c WithWatch) error { return c.Create(ctx, nil) }, isNilObject, "nil"},
		"nil pointer":   {nil, func(c WithWatch) error { return c.Get(ctx, ObjectKey{Name: "x"}, (*corev1.Pod)(nil)) }, isNilObject, "*v1.Pod"},
		"nil list":      {nil, func(c WithWatch) error { return c.List(ctx, (*corev1.PodList)(nil)) }, isNilObject, "*v1.PodList"},
		"nil body": {nil, func(c WithWatch) error {
			return c.SubResource("scale").Create(ctx, named("a", "p"), (*corev1.Pod)(nil))
		}, isNilObject, "the body"},
		"nil patch":  {nil, func(c WithWatch) error { return c.Patch(ctx, named("a", "p"), nil) }, nil, `patch Pod "a/p": the patch is nil`},
		"nil config": {nil, func(c WithWatch) error { return c.Apply(ctx, nil) }, isNilObject, "apply"},
		"no pointer": {nil, func(c WithWatch) error { return c.Create(ctx, byValue{named("a", "p")}) }, nil, "pointer"},
		"not in the scheme": {runtime.NewScheme(), func(c WithWatch) error { return c.Get(ctx, ObjectKey{Name: "x"}, &corev1.Pod{}) },
			runtime.IsNotRegisteredError, "v1.Pod"},
		"two kinds": {twice, func(c WithWatch) error { return c.Create(ctx, &widget{}) }, nil, "set the object's TypeMeta"},
		"two kinds, told": {twice, func(c WithWatch) error {
			return c.Get(ctx, ObjectKey{Namespace: "a", Name: "w"}, &widget{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}})
		}, apierrors.IsNotFound, ""},
		"no kind": {nil, func(c WithWatch) error { return c.Create(ctx, &unstructured.Unstructured{}) }, runtime.IsMissingKind, "SetGroupVersionKind"},
		"no version": {nil, func(c WithWatch) error {
			return c.Create(ctx, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Pod"}})
		}, runtime.IsMissingVersion, "SetGroupVersionKind"},
		"unknown to the server": {nil, func(c WithWatch) error { return c.Delete(ctx, unknown) }, meta.IsNoMatchError, "nowhere.io"},
		"no name to get":        {nil, func(c WithWatch) error { return c.Get(ctx, ObjectKey{Namespace: "a"}, &corev1.Pod{}) }, nil, "set the name"},
		"no name to update":     {nil, func(c WithWatch) error { return c.Update(ctx, named("a", "")) }, nil, "set the name"},
		"no name to delete":     {nil, func(c WithWatch) error { return c.Delete(ctx, named("a", "")) }, nil, "set the name"},
		"no name to evict":      {nil, func(c WithWatch) error { return c.SubResource("eviction").Create(ctx, named("a", ""), named("a", "")) }, nil, "set the name"},
		"no name to apply": {nil, func(c WithWatch) error {
			return c.Apply(ctx, ApplyConfigurationFromUnstructured(nameless), FieldOwner("me"))
		}, nil, "set the name"},
		"no owner to apply": {nil, func(c WithWatch) error {
			u := nameless.DeepCopy()
			u.SetName("p")
			u.SetNamespace("a")
			return c.Apply(ctx, ApplyConfigurationFromUnstructured(u))
		}, nil, "FieldOwner"},
		"no namespace":       {nil, func(c WithWatch) error { return c.Get(ctx, ObjectKey{Name: "p"}, &corev1.Pod{}) }, nil, "set that of the key or object"},
		"a path for a name":  {nil, func(c WithWatch) error { return c.Get(ctx, ObjectKey{Namespace: "a", Name: "p/log"}, &corev1.Pod{}) }, nil, `invalid name "p/log"`},
		"a path for a space": {nil, func(c WithWatch) error { return c.List(ctx, &corev1.PodList{}, InNamespace("a/pods/p")) }, nil, "invalid namespace"},
		"no sub-resource":    {nil, func(c WithWatch) error { return c.SubResource("").Update(ctx, named("a", "p")) }, nil, "sub-resource is empty"},
		"strategic, no type": {nil, func(c WithWatch) error {
			u := nameless.DeepCopy()
			u.SetName("p")
			u.SetNamespace("a")
			return c.Patch(ctx, u, StrategicMergeFrom(u))
		}, nil, "typed"},
		"lock, no version": {nil, func(c WithWatch) error {
			return c.Patch(ctx, named("a", "p"), MergeFromWithOptions(named("a", "p"), MergeFromWithOptimisticLock{}))
		}, nil, "no resourceVersion"},
		"unknown to watch":     {nil, func(c WithWatch) error { _, err := c.Watch(ctx, &unstructured.UnstructuredList{}); return err }, runtime.IsMissingKind, "UnstructuredList"},
		"finalizer, no object": {nil, func(c WithWatch) error { return AddFinalizer(ctx, c, nil, (*corev1.Pod)(nil), "f") }, isNilObject, "finalizer"},
		"finalizer, not read":  {nil, func(c WithWatch) error { return AddFinalizer(ctx, c, nil, named("a", "p"), "f") }, nil, "read it first"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			err := test.do(s.client(Options{Scheme: test.scheme}))
			if err == nil || !strings.Contains(err.Error(), test.says) || test.is != nil && !test.is(err) {
				t.Errorf("got %v", err)
			}
			if sent := s.asked(); len(sent) > 0 && name != "two kinds, told" {
				t.Errorf("sent %v", sent)
			}
		})
	}
}

func isNilObject(err error) bool { return errors.Is(err, apiutil.ErrNilObject) }

func TestBadOptions(t *testing.T) {
	for name, make := range map[string]func() error{
		"no config": func() error { _, err := New(nil, Options{}); return err },
		"bad host":  func() error { _, err := New(&rest.Config{Host: "https://%zz"}, Options{}); return err },
		"bad certificate": func() error {
			_, err := New(&rest.Config{Host: "https://x", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}}, Options{})
			return err
		},
		"unknown kind": func() error {
			_, err := New(&rest.Config{}, Options{Scheme: runtime.NewScheme(), Cache: &CacheOptions{Reader: &recordingCache{}, DisableFor: []Object{&corev1.Pod{}}}})
			return err
		},
		"no gate": func() error {
			_, err := New(&rest.Config{}, Options{Cache: &CacheOptions{Reader: &recordingCache{}, EnableReadYourWritesConsistency: new(true)}})
			return err
		},
	} {
		if err := make(); err == nil || !strings.HasPrefix(err.Error(), "make a client: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The server's own errors keep their type, whatever is said in addition.
func TestServerErrorsKeepTheirType(t *testing.T) {
	s := newServer(t)
	c := s.client(Options{})
	s.on("GET "+podPath, failure(403, metav1.StatusReasonForbidden, `pods "p" is forbidden`))
	s.on("DELETE /api/v1/pods", failure(404, metav1.StatusReasonNotFound, "the server could not find the requested resource"))
	s.on("DELETE /api/v1/namespaces", failure(405, metav1.StatusReasonMethodNotAllowed, "not allowed"))
	err := c.Get(t.Context(), ObjectKey{Namespace: "a", Name: "p"}, &corev1.Pod{})
	if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != 403 || !apierrors.IsForbidden(err) {
		t.Errorf("got %T %v", err, err)
	}
	err = c.DeleteAllOf(t.Context(), &corev1.Pod{}, MatchingLabels{"l": "1"})
	if status, ok := err.(apierrors.APIStatus); !ok || status.Status().Code != 404 || !strings.Contains(err.Error(), "use InNamespace") {
		t.Errorf("got %T %v", err, err)
	}
	err = c.DeleteAllOf(t.Context(), &corev1.Namespace{})
	if !apierrors.IsMethodNotSupported(err) || !strings.Contains(err.Error(), "delete each") {
		t.Errorf("got %T %v", err, err)
	}
}

// A kind that the server no longer serves is looked up again, and found where it went.
func TestForgetsAKindThatTheServerRefuses(t *testing.T) {
	s := newServer(t)
	c := s.client(Options{})
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(widgetKind)
	s.on("GET /apis/example.com/v1/namespaces/a/widgets/w", &reply{code: 404, header: http.Header{"Content-Type": {"text/plain"}}, body: []byte("404 page not found\n")})
	if err := c.Get(t.Context(), ObjectKey{Namespace: "a", Name: "w"}, obj); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	// The CRD came back, with another name for its resource and for the whole cluster.
	s.on("GET /apis", discoveryReply(`{"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[
		{"resource":"gadgets","responseKind":{"kind":"Widget"},"scope":"Cluster","singularResource":"gadget"}]}]}]}`))
	s.on("GET /apis/example.com/v1/gadgets/w", object(200, map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}}))
	obj.SetGroupVersionKind(widgetKind)
	if err := c.Get(t.Context(), ObjectKey{Namespace: "a", Name: "w"}, obj); err != nil || obj.GetName() != "w" {
		t.Errorf("%v, %v", obj, err)
	}
}
