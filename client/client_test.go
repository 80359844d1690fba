// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/client/apiutil"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, ResourceVersion: "7", UID: "u-" + "1", Labels: map[string]string{"l": "1"}},
		Spec:       corev1.PodSpec{NodeName: "n1"},
	}
}

// Each form gets the same object in its own words.
func TestGetInEveryForm(t *testing.T) {
	partial := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"},
		ObjectMeta: pod("p").ObjectMeta,
	}
	podKind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	u, m := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	u.SetGroupVersionKind(podKind)
	m.SetGroupVersionKind(podKind)
	stale := pod("old")
	stale.Spec.Hostname = "must be gone"
	for name, test := range map[string]struct {
		obj    Object
		reply  *reply
		accept string
	}{
		"typed protobuf": {stale, protobuf(200, pod("p")), protobufType + "," + jsonType},
		"typed json":     {&corev1.Pod{}, object(200, pod("p")), protobufType + "," + jsonType},
		"unstructured":   {u, object(200, pod("p")), jsonType},
		"metadata":       {m, object(200, partial), metadataCodec.accept},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.on("GET /api/v1/namespaces/a/pods/p", test.reply)
			if err := s.client(Options{}).Get(t.Context(), ObjectKey{Namespace: "a", Name: "p"}, test.obj); err != nil {
				t.Fatal(err)
			}
			if test.obj.GetName() != "p" || test.obj.GetResourceVersion() != "7" || test.obj.GetLabels()["l"] != "1" {
				t.Errorf("got %v", test.obj)
			}
			if got := s.last().header.Get("Accept"); got != test.accept {
				t.Errorf("Accept %q, want %q", got, test.accept)
			}
			if apiutil.FormOf(test.obj) != apiutil.Typed && test.obj.GetObjectKind().GroupVersionKind() != podKind {
				t.Errorf("kind %v", test.obj.GetObjectKind().GroupVersionKind())
			}
		})
	}
	if stale.Spec.Hostname != "" || stale.Spec.NodeName != "n1" {
		t.Errorf("the target was not replaced: %v", stale.Spec)
	}
}

// readerFunc is a cache for tests: it says that it was asked.
type recordingCache struct{ asked []string }

func (r *recordingCache) Get(_ context.Context, key ObjectKey, _ Object, _ ...GetOption) error {
	r.asked = append(r.asked, "get "+key.String())
	return nil
}

func (r *recordingCache) List(_ context.Context, list ObjectList, _ ...ListOption) error {
	r.asked = append(r.asked, "list "+list.GetObjectKind().GroupVersionKind().Kind)
	return nil
}

func TestShouldBypassCache(t *testing.T) {
	podList, secrets := &unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}
	podList.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "PodList"})
	secrets.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "SecretList"})
	for name, test := range map[string]struct {
		cache *CacheOptions
		obj   runtime.Object
		want  bool
	}{
		"no cache options":       {nil, &corev1.Pod{}, true},
		"no reader":              {&CacheOptions{}, &corev1.Pod{}, true},
		"typed":                  {&CacheOptions{Reader: &recordingCache{}}, &corev1.Pod{}, false},
		"disabled kind":          {&CacheOptions{Reader: &recordingCache{}, DisableFor: []Object{&corev1.Pod{}}}, &corev1.Pod{}, true},
		"list of disabled kind":  {&CacheOptions{Reader: &recordingCache{}, DisableFor: []Object{&corev1.Pod{}}}, &corev1.PodList{}, true},
		"metadata of disabled":   {&CacheOptions{Reader: &recordingCache{}, DisableFor: []Object{&corev1.Secret{}}}, secrets, true},
		"metadata":               {&CacheOptions{Reader: &recordingCache{}}, secrets, false},
		"unstructured":           {&CacheOptions{Reader: &recordingCache{}}, podList, true},
		"unstructured, cached":   {&CacheOptions{Reader: &recordingCache{}, Unstructured: true}, podList, false},
		"unstructured, disabled": {&CacheOptions{Reader: &recordingCache{}, Unstructured: true, DisableFor: []Object{&corev1.Pod{}}}, podList, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, err := newClient(newServer(t).config(), Options{Cache: test.cache})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.shouldBypassCache(test.obj); err != nil || got != test.want {
				t.Errorf("got %v, %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestWritesOfATypedObject(t *testing.T) {
	s := newServer(t)
	c := s.client(Options{FieldOwner: "me"})
	path := "/api/v1/namespaces/a/pods"
	s.on("POST "+path, protobuf(201, pod("p")))
	s.on("PUT "+path+"/p", protobuf(200, pod("p")))
	s.on("PUT "+path+"/p/status", protobuf(200, pod("p")))
	s.on("PATCH "+path+"/p", protobuf(200, pod("p")))
	s.on("DELETE "+path+"/p", object(200, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"}))
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
	before := obj.DeepCopy()
	steps := []struct {
		name string
		do   func() error
		want string // method, path and query
	}{
		{"create", func() error { return c.Create(t.Context(), obj) }, "POST " + path + " fieldManager=me"},
		{"update", func() error { return c.Update(t.Context(), obj, FieldOwner("you"), DryRunAll) }, "PUT " + path + "/p dryRun=All&fieldManager=you"},
		{"patch", func() error { return c.Patch(t.Context(), obj, MergeFrom(before)) }, "PATCH " + path + "/p fieldManager=me"},
		{"status", func() error { return c.Status().Update(t.Context(), obj) }, "PUT " + path + "/p/status fieldManager=me"},
		{"delete", func() error { return c.Delete(t.Context(), obj, GracePeriodSeconds(3)) }, "DELETE " + path + "/p "},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if r := s.last(); r.method+" "+r.path+" "+r.query != step.want {
			t.Errorf("%s: sent %s %s %s, want %s", step.name, r.method, r.path, r.query, step.want)
		}
		if obj.ResourceVersion != "7" || obj.Spec.NodeName != "n1" || obj.Kind != "" {
			t.Errorf("%s: the answer did not get into the object: %v", step.name, obj)
		}
	}
}

// A gate hears of a write before it is sent and of its answer before the caller does, and can refuse.
type testGate struct {
	begun    []Write
	outcomes []Outcome
	refuse   error
}

func (g *testGate) Begin(ctx context.Context, w Write) (context.Context, func(Outcome), error) {
	g.begun = append(g.begun, w)
	return ctx, func(o Outcome) { g.outcomes = append(g.outcomes, o) }, g.refuse
}

func TestWriteGate(t *testing.T) {
	s := newServer(t)
	gate := &testGate{}
	c := s.client(Options{Gates: []WriteGate{gate}})
	s.on("POST /api/v1/namespaces/a/pods", protobuf(201, pod("p")))
	s.on("DELETE /api/v1/namespaces/a/pods/p", failure(http.StatusConflict, metav1.StatusReasonConflict, "no"))
	obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", GenerateName: "p"}}
	if err := c.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), obj); !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	if len(gate.begun) != 2 || gate.begun[0].Verb != VerbCreate || gate.begun[0].Name != "" || gate.begun[1].UID != "u-1" {
		t.Errorf("begun: %+v", gate.begun)
	}
	if o := gate.outcomes; len(o) != 2 || o[0].Err != nil || !o[0].Sent || o[0].StatusCode != 201 || len(o[0].Body) == 0 || o[1].StatusCode != 409 || o[1].Err == nil {
		t.Errorf("outcomes: %+v", o)
	}
	s.asked()
	gate.refuse = context.DeadlineExceeded
	err := c.Create(t.Context(), obj)
	if err == nil || !strings.Contains(err.Error(), `create Pod "a/p"`) || len(s.asked()) != 0 {
		t.Errorf("refused write: %v", err)
	}
	if err := c.Get(t.Context(), ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) || len(gate.begun) != 3 {
		t.Errorf("reads must not pass the gate: %v", err)
	}
}

// If a later gate refuses, those before it are told, once, and nothing is sent.
func TestGatesInTurn(t *testing.T) {
	s := newServer(t)
	first, second, third := &testGate{}, &testGate{refuse: errors.New("not now")}, &testGate{}
	c := s.client(Options{Gates: []WriteGate{first, second, third}})
	err := c.Update(t.Context(), pod("p"))
	if !errors.Is(err, second.refuse) || len(s.asked()) != 0 {
		t.Errorf("got %v", err)
	}
	if len(first.outcomes) != 1 || first.outcomes[0].Sent || !errors.Is(first.outcomes[0].Err, second.refuse) || first.outcomes[0].Unknown {
		t.Errorf("the first was told %+v", first.outcomes)
	}
	if len(second.outcomes) != 0 || len(third.begun) != 0 {
		t.Errorf("the second was told %+v, the third asked %+v", second.outcomes, third.begun)
	}
}

// A gate can cancel a write that is under way, and its reason is what the caller finds.
type cancellingGate struct{ reason error }

func (g cancellingGate) Begin(ctx context.Context, _ Write) (context.Context, func(Outcome), error) {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(g.reason)
	return ctx, func(Outcome) { cancel(nil) }, nil
}

func TestGateCancels(t *testing.T) {
	s, gate := newServer(t), cancellingGate{errors.New("the term is over")}
	c := s.client(Options{Gates: []WriteGate{gate}})
	if err := c.Update(t.Context(), pod("p")); !errors.Is(err, gate.reason) || len(s.asked()) != 0 {
		t.Errorf("got %v", err)
	}
}
