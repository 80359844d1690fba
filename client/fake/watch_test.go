// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

// seen reads n events and writes them as TYPE name.
func seen(t *testing.T, w watch.Interface, n int) string {
	t.Helper()
	var all []string
	for range n {
		e, ok := <-w.ResultChan()
		if !ok {
			t.Fatalf("the watch ended after %v", all)
		}
		all = append(all, fmt.Sprint(e.Type, " ", e.Object.(client.Object).GetName()))
	}
	select {
	case e := <-w.ResultChan():
		t.Errorf("one event too many: %v after %v", e, all)
	default:
	}
	return strings.Join(all, ", ")
}

func TestWatchSeesWhatItSelects(t *testing.T) {
	ctx := t.Context()
	c := NewFakeClient(cm("a", "before"))
	all, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace("a"))
	must(t, err)
	labelled, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.MatchingLabels{"app": "x"})
	must(t, err)
	named, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.MatchingFields{"metadata.name": "c"})
	must(t, err)

	o := cm("a", "c")
	must(t, c.Create(ctx, o)) // no label
	o.Labels = map[string]string{"app": "x"}
	must(t, c.Update(ctx, o)) // begins to match
	o.Data["a"] = "2"
	must(t, c.Update(ctx, o))
	o.Labels = nil
	must(t, c.Update(ctx, o)) // ceases to match
	o.Data["a"] = "3"
	must(t, c.Update(ctx, o))
	must(t, c.Delete(ctx, o))
	must(t, c.Create(ctx, cm("b", "other")))

	if got := seen(t, all, 6); got != "ADDED c, MODIFIED c, MODIFIED c, MODIFIED c, MODIFIED c, DELETED c" {
		t.Errorf("all: %s", got)
	}
	if got := seen(t, labelled, 3); got != "ADDED c, MODIFIED c, DELETED c" {
		t.Errorf("labelled: %s", got)
	}
	if got := seen(t, named, 6); got != "ADDED c, MODIFIED c, MODIFIED c, MODIFIED c, MODIFIED c, DELETED c" {
		t.Errorf("named: %s", got)
	}
}

// The last word on an object that leaves the selection is what it was when it still matched.
func TestWatchLastMatchingContent(t *testing.T) {
	ctx := t.Context()
	o := cm("a", "c")
	o.Labels = map[string]string{"app": "x"}
	c := NewFakeClient(o)
	w, err := c.Watch(ctx, &corev1.ConfigMapList{}, client.MatchingLabels{"app": "x"})
	must(t, err)
	must(t, c.Get(ctx, client.ObjectKeyFromObject(o), o))
	o.Labels, o.Data["a"] = nil, "new"
	must(t, c.Update(ctx, o))
	last := (<-w.ResultChan()).Object.(*corev1.ConfigMap)
	if last.Data["a"] != "b" || last.Labels["app"] != "x" || last.ResourceVersion != o.ResourceVersion {
		t.Errorf("got %s", text(last))
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	c := NewFakeClient()
	ctx, cancel := context.WithCancel(t.Context())
	w, err := c.Watch(ctx, &corev1.ConfigMapList{})
	must(t, err)
	cancel()
	if _, ok := <-w.ResultChan(); ok {
		t.Error("got an event")
	}
	w.Stop()
	must(t, c.Create(t.Context(), cm("a", "b"))) // nobody listens
}

// A reader who does not read must not stop the writers, and gets everything when it comes back.
func TestWatchNeverBlocksWriters(t *testing.T) {
	ctx := t.Context()
	c := NewFakeClient()
	slow, err := c.Watch(ctx, &corev1.ConfigMapList{})
	must(t, err)
	never, err := c.Watch(ctx, &corev1.ConfigMapList{})
	must(t, err)
	const n = 5 * watchBuffer
	for i := range n {
		must(t, c.Create(ctx, cm("a", fmt.Sprintf("%04d", i))))
	}
	for i := range n {
		if name := (<-slow.ResultChan()).Object.(client.Object).GetName(); name != fmt.Sprintf("%04d", i) {
			t.Fatalf("event %d is of %s", i, name)
		}
	}
	slow.Stop()
	never.Stop() // its goroutine ends: TestMain looks
	for range never.ResultChan() {
	}
}

func TestWatchGoesOnFromAVersion(t *testing.T) {
	ctx := t.Context()
	c := NewClientBuilder().WithGlobalResourceVersionCounter().Build()
	first := cm("a", "1")
	must(t, c.Create(ctx, first))
	must(t, c.Create(ctx, cm("a", "2")))
	must(t, c.Delete(ctx, first))
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: first.ResourceVersion}}
	w, err := c.Watch(ctx, &corev1.ConfigMapList{}, from)
	must(t, err)
	if got := seen(t, w, 2); got != "ADDED 2, DELETED 1" {
		t.Errorf("got %s", got)
	}
	for i := range maxHistory + 1 {
		must(t, c.Create(ctx, cm("b", fmt.Sprint(i))))
	}
	if _, err := c.Watch(ctx, &corev1.ConfigMapList{}, from); err == nil || !strings.Contains(err.Error(), "too old resource version") {
		t.Errorf("got %v", err)
	}
}

func TestWatchStreamsAList(t *testing.T) {
	c := NewClientBuilder().WithGlobalResourceVersionCounter().WithObjects(cm("a", "1"), cm("b", "2")).Build()
	w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, &client.ListOptions{Raw: &metav1.ListOptions{
		SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
	}})
	must(t, err)
	for _, want := range []watch.EventType{watch.Added, watch.Added, watch.Bookmark} {
		e := <-w.ResultChan()
		if e.Type != want {
			t.Errorf("got %s, want %s", e.Type, want)
		}
		if o := e.Object.(client.Object); e.Type == watch.Bookmark && (o.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" || o.GetResourceVersion() == "") {
			t.Errorf("the bookmark is %s", text(o))
		}
	}
}

func TestWatchForms(t *testing.T) {
	ctx := t.Context()
	c := NewFakeClient()
	m := &metav1.PartialObjectMetadataList{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	w, err := c.Watch(ctx, m)
	must(t, err)
	must(t, c.Create(ctx, cm("a", "b")))
	if got, ok := (<-w.ResultChan()).Object.(*metav1.PartialObjectMetadata); !ok || got.Name != "b" || got.Kind != "ConfigMap" {
		t.Errorf("got %T %s", got, text(got))
	}
}
