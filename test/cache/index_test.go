// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
)

// node reads what the objects of this file are indexed by, in whatever form they come: the field of a Pod, an entry
// of a Widget, and of metadata the label that says the same.
func node(o client.Object) []string {
	switch o := o.(type) {
	case *corev1.Pod:
		return []string{o.Spec.NodeName}
	case *Widget:
		return []string{o.Spec.Extra["node"]}
	case *unstructured.Unstructured:
		path := []string{"spec", "nodeName"}
		if o.GetKind() == "Widget" {
			path = []string{"spec", "extra", "node"}
		}
		name, _, _ := unstructured.NestedString(o.Object, path...)
		return []string{name}
	}
	return []string{o.GetLabels()["node"]}
}

// on makes an object that node tells to be on a node.
func (s shape) on(ns, name, node string) client.Object {
	obj := s.whole(ns, name, "node", node)
	switch o := obj.(type) {
	case *corev1.Pod:
		o.Spec = corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	case *Widget:
		o.Spec.Extra = map[string]string{"node": node}
	}
	return obj
}

// create creates an object. A new namespace takes pods once it has its service account.
func create(ctx context.Context, c client.Client, obj client.Object) error {
	for deadline := time.Now().Add(settle); ; time.Sleep(20 * time.Millisecond) {
		err := c.Create(ctx, obj)
		if !apierrors.IsForbidden(err) || time.Now().After(deadline) {
			return err
		}
	}
}

// CA-3: an index registered twice, and one registered while objects are being created.
func TestIndexes(t *testing.T) {
	for _, listed := range []bool{false, true} {
		for _, s := range shapes(podKind, widgetKind) {
			t.Run(fmt.Sprintf("%s listed=%v", s, listed), func(t *testing.T) { indexTwiceAndLater(t, s, listed) })
		}
	}
}

func indexTwiceAndLater(t *testing.T, s shape, listed bool) {
	a, b := namespace(t), namespace(t)
	n1, n2 := "n1-"+a, "n2-"+a // other tests leave objects too
	for _, obj := range []client.Object{s.on(a, "p1", n1), s.on(a, "p2", n2), s.on(b, "p1", n1), s.on(b, "p4", n2), s.on(b, "p5", n1)} {
		must(t, create(t.Context(), live, obj))
	}
	var namespaces map[string]cache.Config
	if listed {
		namespaces = map[string]cache.Config{a: {}, b: {}}
	}
	cl := newCluster(t, config, in(namespaces))
	c, example := cl.GetClient(), s.object("", "")
	must(t, cl.GetCache().IndexField(t.Context(), example, "spec.nodeName", node))
	wrong := func(client.Object) []string { return []string{n1} }
	conflict := func(when string) {
		t.Helper()
		err := cl.GetCache().IndexField(t.Context(), example, "spec.nodeName", wrong)
		if err == nil || !strings.HasPrefix(err.Error(), "indexer conflict") || !strings.Contains(err.Error(), "spec.nodeName") || !strings.Contains(err.Error(), s.kind.Kind) {
			t.Errorf("the same index again, %s: %v", when, err)
		}
	}
	byNode := func() {
		t.Helper()
		on := func(node string) client.ListOption { return client.MatchingFields{"spec.nodeName": node} }
		want(t, "everywhere", s.listed(t, c, on(n1)), a+"/p1", b+"/p1", b+"/p5")
		want(t, "in a", s.listed(t, c, on(n1), client.InNamespace(a)), a+"/p1")
		want(t, "in b", s.listed(t, c, on(n1), client.InNamespace(b)), b+"/p1", b+"/p5")
		want(t, "on the other", s.listed(t, c, on(n2)), a+"/p2", b+"/p4")
		want(t, "on none", s.listed(t, c, on("nowhere")))
	}
	conflict("before the start")
	begin(t, cl)
	byNode()
	conflict("after the start")
	byNode()
	indexUnderWrites(t, s, cl.GetCache(), c, a, b)
	indexAllOrNone(t, s, cl.GetCache(), c, a, b)
	byNode()
}

// indexUnderWrites adds an index to a filled cache while objects are being created: a list right after it has all
// that was cached, and what comes is not missed.
func indexUnderWrites(t *testing.T, s shape, ca cache.Cache, c client.Client, a, b string) {
	const more = 20
	var writers sync.WaitGroup
	for _, ns := range []string{a, b} {
		writers.Go(func() {
			for i := range more {
				if err := live.Create(t.Context(), s.on(ns, fmt.Sprintf("q%02d", i), "elsewhere-"+a)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	eventually(t, "nothing was created", settle, func() bool { return s.there(t, c, a, "q02") })
	before := append(s.listed(t, c, client.InNamespace(a)), s.listed(t, c, client.InNamespace(b))...)
	must(t, ca.IndexField(t.Context(), s.object("", ""), "phase", func(o client.Object) []string { return []string{"any-" + o.GetNamespace()} }))
	byPhase := func(ns string, opts ...client.ListOption) []string {
		return s.listed(t, c, append(opts, client.MatchingFields{"phase": "any-" + ns})...)
	}
	after := map[string]bool{}
	for _, key := range append(byPhase(a), byPhase(b)...) {
		after[key] = true
	}
	for _, key := range before {
		if !after[key] {
			t.Errorf("%s was cached before the index was added, and is not in it", key)
		}
	}
	writers.Wait()
	eventually(t, "the index misses an object", settle, func() bool {
		return len(byPhase(a)) == 2+more && len(byPhase(b)) == 3+more
	})
	want(t, "of another namespace", byPhase(a, client.InNamespace(b)))
}

// indexAllOrNone registers two indexes of which one is there already: the other must be in no store, of no namespace.
func indexAllOrNone(t *testing.T, s shape, ca cache.Cache, c client.Client, a, b string) {
	inf, err := ca.GetInformer(t.Context(), s.object("", ""))
	must(t, err)
	constant := func(any) ([]string, error) { return []string{"v"}, nil }
	must(t, inf.AddIndexers(toolscache.Indexers{"raw": constant}))
	err = inf.AddIndexers(toolscache.Indexers{"other": constant, "raw": constant})
	if err == nil || !strings.HasPrefix(err.Error(), "indexer conflict") {
		t.Errorf("one of two indexes was there: %v", err)
	}
	for _, ns := range []string{a, b} {
		err := c.List(t.Context(), s.list(), client.InNamespace(ns), client.MatchingFields{"other": "v"})
		if err == nil || !strings.Contains(err.Error(), "other") || !strings.Contains(err.Error(), "IndexField") || !strings.Contains(err.Error(), ns) {
			t.Errorf("a list by an index that %s should not have: %v", ns, err)
		}
	}
	if err := inf.AddIndexers(toolscache.Indexers{"other": constant}); err != nil {
		t.Errorf("a store has kept the index of a failed registration: %v", err)
	}
}
