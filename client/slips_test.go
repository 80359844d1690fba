// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client/apiutil"
)

// Every row of the table of slips in DESIGN.md names a test that exists.
func TestSlipsAreTested(t *testing.T) {
	design, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(design), "| slip of upstream | our test |")
	if !found {
		t.Fatal("DESIGN.md has no table of slips")
	}
	var tests strings.Builder
	for _, folder := range []string{".", "apiutil", "interceptor", "../test/client"} {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", folder, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	names := regexp.MustCompile("\\| `((?:Test|Fuzz)\\w+)` \\|$")
	rows := 0
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		rows++
		name := names.FindStringSubmatch(line)
		if name == nil || !strings.Contains(tests.String(), "func "+name[1]+"(") {
			t.Errorf("the row names no test that exists: %s", line)
		}
	}
	if rows < 10 {
		t.Errorf("only %d rows were read", rows)
	}
}

// A write tells the gate in which form it is, the same that a read of the same object is routed by.
func TestWriteTellsItsForm(t *testing.T) {
	s, gate := newServer(t), &testGate{}
	c := s.client(Options{Gates: []WriteGate{gate}})
	for _, form := range []string{"typed", "unstructured", "metadata"} {
		obj := inForm(t, form, corev1.SchemeGroupVersion.WithKind("Pod"))
		_ = c.Delete(t.Context(), obj) // the server has no such pod
		_ = c.Status().Patch(t.Context(), obj, RawPatch("application/merge-patch+json", []byte(`{}`)))
		for _, w := range gate.begun {
			if w.Form != apiutil.FormOf(obj) || w.Form.String() != form || w.GroupVersionKind.Kind != "Pod" || w.Namespace != "a" || w.Name != "p" {
				t.Errorf("%s: %+v", form, w)
			}
		}
		if len(gate.begun) != 2 || gate.begun[1].SubResource != "status" || gate.begun[1].Verb != VerbPatch {
			t.Errorf("%s: %+v", form, gate.begun)
		}
		gate.begun = nil
	}
}

// ownUnstructured is an unstructured object that is not apimachinery's own type.
type ownUnstructured struct{ *unstructured.Unstructured }

func (o ownUnstructured) DeepCopyObject() runtime.Object {
	return ownUnstructured{o.Unstructured.DeepCopy()}
}

// Every type that implements runtime.Unstructured has the unstructured form, for reads and writes alike.
func TestOwnUnstructuredTypes(t *testing.T) {
	s, gate, cache := newServer(t), &testGate{}, &recordingCache{}
	c := s.client(Options{Gates: []WriteGate{gate}, Cache: &CacheOptions{Reader: cache}})
	obj := &ownUnstructured{inForm(t, "unstructured", widgetKind).(*unstructured.Unstructured)}
	_ = c.Delete(t.Context(), obj)
	_ = c.Get(t.Context(), ObjectKeyFromObject(obj), obj)
	if gate.begun[0].Form != apiutil.Unstructured || len(cache.asked) != 0 {
		t.Errorf("written as %s, read from the cache: %v", gate.begun[0].Form, cache.asked)
	}
}

// DeleteAllOf works with read-your-writes: the gate hears what it selects.
func TestDeleteAllOfPassesTheGate(t *testing.T) {
	s := newServer(t)
	cache := &gatedCache{}
	c := s.client(Options{Cache: &CacheOptions{Reader: cache, EnableReadYourWritesConsistency: new(true)}})
	s.on("DELETE /api/v1/namespaces/a/pods", object(200, &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}))
	if err := c.DeleteAllOf(t.Context(), &corev1.Pod{}, InNamespace("a"), MatchingLabels{"l": "1"}, DisableReadYourWritesConsistency); err != nil {
		t.Fatal(err)
	}
	w := cache.begun[0]
	if w.Verb != VerbDeleteAllOf || w.List == nil || w.List.LabelSelector.String() != "l=1" || w.Namespace != "a" || !w.DisableReadYourWrites {
		t.Errorf("%+v", w)
	}
}

// A kind is resolved once for each Go type that tells it, and each time for those that carry it.
func TestKindIsResolvedOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{})
	for _, kind := range []string{"Left", "Right"} { // one type for two kinds
		scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind(kind), &corev1.Secret{})
	}
	cache := &gatedCache{}
	c := newServer(t).client(Options{Scheme: scheme, Cache: &CacheOptions{Reader: cache}})
	key := ObjectKey{Namespace: "a", Name: "p"}
	meta := func(kind string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
	}
	two := func(kind string) *corev1.Secret {
		return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
	}
	for _, obj := range []Object{&corev1.Pod{}, &corev1.Pod{}, meta("Pod"), meta("Secret"), two("Left"), two("Right")} {
		if err := c.Get(t.Context(), key, obj, DisableReadYourWritesConsistency); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := c.List(t.Context(), &corev1.PodList{}); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"Pod typed", "Pod metadata", "Secret metadata", "Left typed", "Right typed", "Pod typed"}
	if !slices.Equal(cache.kinds, want) || len(cache.ofKind.asked) != 8 || len(cache.asked) != 0 {
		t.Errorf("asked for %q, then %q and past them %q", cache.kinds, cache.ofKind.asked, cache.asked)
	}
	if err := c.Get(t.Context(), key, (*corev1.Pod)(nil)); !errors.Is(err, apiutil.ErrNilObject) {
		t.Errorf("a nil pointer of a known type: %v", err)
	}
	if err := c.List(t.Context(), (*corev1.PodList)(nil)); !errors.Is(err, apiutil.ErrNilObject) {
		t.Errorf("a nil list of a known type: %v", err)
	}
	if err := c.Get(t.Context(), key, nil); !errors.Is(err, apiutil.ErrNilObject) {
		t.Errorf("nil: %v", err)
	}
}

// gatedCache is a cache that hands out readers of one kind and hears of writes.
type gatedCache struct {
	recordingCache
	testGate
	kinds  []string
	ofKind recordingCache
}

func (g *gatedCache) OfKind(kind schema.GroupVersionKind, form apiutil.Form) Reader {
	g.kinds = append(g.kinds, kind.Kind+" "+form.String())
	return &g.ofKind
}

// The default scheme knows the types of k8s.io/api without anyone registering them, and a scheme of one's own does not.
func TestDefaultScheme(t *testing.T) {
	c := newServer(t).client(Options{})
	if kind, err := c.GroupVersionKindFor(&corev1.PodList{}); err != nil || kind != corev1.SchemeGroupVersion.WithKind("PodList") {
		t.Errorf("%v, %v", kind, err)
	}
	if c.Scheme() != apiutil.DefaultScheme() || c.Scheme().Recognizes(corev1.SchemeGroupVersion.WithKind("Pod")) {
		t.Error("the default scheme was written to")
	}
	if _, err := c.GroupVersionKindFor(&widget{}); !runtime.IsNotRegisteredError(err) {
		t.Errorf("a type of another module: %v", err)
	}
	small := apiutil.SchemeFor(&corev1.Pod{}, corev1.SchemeGroupVersion.WithKind("Pod"), nil)
	if !small.Recognizes(corev1.SchemeGroupVersion.WithKind("Pod")) || small != apiutil.SchemeFor(&corev1.Pod{}, corev1.SchemeGroupVersion.WithKind("Pod"), nil) {
		t.Error("the scheme of a kind is not kept")
	}
	own := widgetScheme()
	if apiutil.SchemeFor(&widget{}, widgetKind, own) != own {
		t.Error("a scheme that knows the kind is not used")
	}
}
