// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/cluster"
)

// in makes the cache hold these namespaces only.
func in(namespaces map[string]cache.Config) cluster.Option {
	return func(o *cluster.Options) { o.Cache.DefaultNamespaces = namespaces }
}

// CA-2: a namespace given for a kind without namespaces is ignored, cached and live alike, in every form.
func TestNamespaceGivenForAKindWithout(t *testing.T) {
	a, b := namespace(t), namespace(t)
	one, two := "cr1-"+a, "cr2-"+a
	for _, role := range []*rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: one, Labels: map[string]string{"t": a}}}, {ObjectMeta: metav1.ObjectMeta{Name: two}},
	} {
		must(t, live.Create(t.Context(), role))
	}
	both := func(keys []string) []string {
		return slices.DeleteFunc(keys, func(key string) bool { return key != "/"+one && key != "/"+two })
	}
	for name, namespaces := range map[string]map[string]cache.Config{"whole": nil, "two namespaces": {a: {}, b: {}}} {
		for _, s := range shapes(clusterRoleKind) {
			t.Run(name+" "+s.String(), func(t *testing.T) {
				cl := start(t, config, in(namespaces))
				must(t, cl.GetCache().IndexField(t.Context(), s.object("", ""), "t", func(o client.Object) []string { return []string{o.GetLabels()["t"]} }))
				inA := client.NewNamespacedClient(cl.GetClient(), a)
				for name, r := range map[string]client.Reader{"cached": cl.GetClient(), "live": cl.GetAPIReader(), "namespaced": inA} {
					for _, share := range []client.UnsafeDisableDeepCopyOption{false, true} {
						must(t, r.Get(t.Context(), client.ObjectKey{Namespace: a, Name: one}, s.object("", ""), share))
						all := s.listed(t, r, client.InNamespace(a), share)
						want(t, name, both(slices.Clone(all)), "/"+one, "/"+two)
						want(t, name+" beside live", all, s.listed(t, cl.GetAPIReader())...)
						want(t, name+" by label", s.listed(t, r, client.InNamespace(a), client.MatchingLabels{"t": a}, share), "/"+one)
						if name != "live" { // the server has no such index
							want(t, name+" by field", s.listed(t, r, client.InNamespace(a), client.MatchingFields{"t": a}, share), "/"+one)
						}
					}
				}
			})
		}
	}
}

// CA-5, cache 1: a namespace that is not cached is an error that nobody takes for "not there".
func TestUnlistedNamespace(t *testing.T) {
	a, b := namespace(t), namespace(t)
	for _, s := range shapes(configMapKind, widgetKind) {
		t.Run(s.String(), func(t *testing.T) {
			c := start(t, config, in(map[string]cache.Config{a: {}})).GetClient()
			for what, err := range map[string]error{
				"get":  c.Get(t.Context(), client.ObjectKey{Namespace: b, Name: "m"}, s.object("", "")),
				"list": c.List(t.Context(), s.list(), client.InNamespace(b)),
			} {
				if err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), b) || !strings.Contains(err.Error(), s.kind.Kind) {
					t.Errorf("%s in a namespace that is not cached: %v", what, err)
				}
			}
			if s.there(t, c, a, "m") {
				t.Error("something is in an empty namespace")
			}
		})
	}
}

// CA-5, cache 2: all namespaces beside one with a selector of its own, also with a second one listed.
func TestAllNamespacesBesideANamedOne(t *testing.T) {
	for _, second := range []bool{false, true} {
		for _, s := range shapes(configMapKind, widgetKind) {
			t.Run(fmt.Sprintf("%s second=%v", s, second), func(t *testing.T) { allBesideOne(t, s, second) })
		}
	}
}

func allBesideOne(t *testing.T, s shape, second bool) {
	a, b := namespace(t), namespace(t)
	m1, m2, m3 := a+"/m1", a+"/m2", b+"/m3"
	must(t, live.Create(t.Context(), s.whole(a, "m1", "x", "1", "of", a)), live.Create(t.Context(), s.whole(a, "m2", "of", a)),
		live.Create(t.Context(), s.whole(b, "m3", "of", a)))
	namespaces := map[string]cache.Config{a: {LabelSelector: labels.SelectorFromSet(labels.Set{"x": "1"})}, cache.AllNamespaces: {}}
	if second {
		namespaces[b] = cache.Config{}
	}
	cl := start(t, config, in(namespaces))
	c, mine := cl.GetClient(), client.MatchingLabels{"of": a} // other tests leave objects too
	for key, there := range map[string]bool{m1: true, m2: false, m3: true} {
		ns, name, _ := strings.Cut(key, "/")
		if s.there(t, c, ns, name) != there {
			t.Errorf("%s: found %v", key, !there)
		}
	}
	want(t, "in the named namespace", s.listed(t, c, client.InNamespace(a)), m1)
	want(t, "in another", s.listed(t, c, client.InNamespace(b)), m3)
	want(t, "everywhere", s.listed(t, c, mine), m1, m3)
	want(t, "in pages", s.pages(t, c, 2, mine), m1, m3)
	want(t, "in pages of one", s.pages(t, c, 1, mine), m1, m3)

	heard := hear(t, cl, s, mine)
	want(t, "events of the beginning", heard.take(t, 2), "add "+m1, "add "+m3)
	for _, step := range []struct {
		ns, name string
		labels   []string
		event    string
	}{
		{a, "m1", []string{"x", "1", "of", a, "y", "1"}, "update " + m1},
		{b, "m3", []string{"of", a, "y", "1"}, "update " + m3},
		{a, "m2", []string{"x", "1", "of", a}, "add " + m2},
		{a, "m1", []string{"of", a}, "delete " + m1},
		{a, "m2", nil, "delete " + m2},
		{b, "m3", nil, "delete " + m3},
	} {
		obj := s.whole(step.ns, step.name)
		if step.labels == nil {
			must(t, live.Delete(t.Context(), obj))
		} else {
			must(t, live.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
			obj.SetLabels(s.object("", "", step.labels...).GetLabels())
			must(t, live.Update(t.Context(), obj))
		}
		want(t, "events of one change", heard.take(t, 1), step.event)
	}
	want(t, "at the end", s.listed(t, c, mine))
}

// A selector by a field that the kind does not have makes reads fail at once with the server's reason.
func TestSelectorTheServerRefuses(t *testing.T) {
	for _, s := range shapes(configMapKind, widgetKind) {
		t.Run(s.String(), func(t *testing.T) {
			cl := start(t, config, func(o *cluster.Options) {
				o.Cache.DefaultFieldSelector = fields.OneTermEqualSelector("spec.nothing", "x")
			})
			err := cl.GetClient().List(t.Context(), s.list())
			if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "spec.nothing") || !strings.Contains(err.Error(), s.kind.Kind) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// pages lists page by page and checks each page's size.
func (s shape) pages(t *testing.T, r client.Reader, limit int64, opts ...client.ListOption) (all []string) {
	t.Helper()
	list := s.list()
	for {
		must(t, r.List(t.Context(), list, append(opts, client.Limit(limit), client.Continue(list.GetContinue()))...))
		page := keys(t, list)
		if int64(len(page)) > limit {
			t.Errorf("a page of at most %d has %v", limit, page)
		}
		all = append(all, page...)
		if list.GetContinue() == "" {
			return all
		}
	}
}

// heard is what a handler was told, in order.
type heard struct {
	mu     sync.Mutex
	events []string
}

// hear adds a handler that notes what happens to the objects with these labels.
func hear(t *testing.T, cl cluster.Cluster, s shape, of client.MatchingLabels) *heard {
	t.Helper()
	h := &heard{}
	note := func(what string, o any) {
		obj, ok := o.(client.Object)
		if last, unseen := o.(toolscache.DeletedFinalStateUnknown); unseen {
			obj, ok = last.Obj.(client.Object)
		}
		if !ok || !labels.SelectorFromSet(labels.Set(of)).Matches(labels.Set(obj.GetLabels())) {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events = append(h.events, what+" "+client.ObjectKeyFromObject(obj).String())
	}
	inf, err := cl.GetCache().GetInformer(t.Context(), s.object("", ""))
	must(t, err)
	_, err = inf.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { note("add", o) }, UpdateFunc: func(_, o any) { note("update", o) }, DeleteFunc: func(o any) { note("delete", o) },
	})
	must(t, err)
	return h
}

// told reports whether the handler was told of an event, among others.
func (h *heard) told(event string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.events, event)
}

// take waits for n events and a little longer for one too many, and returns all.
func (h *heard) take(t *testing.T, n int) []string {
	t.Helper()
	eventually(t, fmt.Sprintf("there were not %d events", n), settle, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.events) >= n
	})
	time.Sleep(300 * time.Millisecond) // a second copy would come by another watch, and nothing tells that none does
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.events
	h.events = nil
	return out
}
