// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// cached is a case that has a running cache and a namespace with the ConfigMaps
// a, b and c; a and b are labelled x=1, and a's data differ.
func cached(name, why string, options func(ns string, opts *cache.Options), run func(t *testing.T, o *outcome, c cache.Cache, ns string)) testCase {
	return testCase{"cache", name, why, func(t *testing.T, o *outcome) {
		ns := namespace(t)
		configMap(t, ns, "c", nil)
		configMap(t, ns, "b", map[string]string{"x": "1"})
		configMap(t, ns, "a", map[string]string{"x": "1"})
		opts := cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}}
		if options != nil {
			options(ns, &opts)
		}
		run(t, o, running(t, server, opts), ns)
	}}
}

// running starts a cache that ends with the case.
func running(t *testing.T, config *rest.Config, opts cache.Options) cache.Cache {
	t.Helper()
	c, err := cache.New(config, opts)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache did not start")
	}
	return c
}

// wire is a config whose requests pass see, which may answer itself.
func wire(see func(r *http.Request) *http.Response) *rest.Config {
	c := rest.CopyConfig(server)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if answer := see(r); answer != nil {
				return answer, nil
			}
			return next.RoundTrip(r)
		})
	})
	return c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// refusal is the answer of a server that forbids.
func refusal(r *http.Request) *http.Response {
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"forbidden","reason":"Forbidden","code":403}`
	return &http.Response{StatusCode: 403, Status: "403 Forbidden", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

func cacheCases() []testCase {
	return slices.Concat(cacheReadCases(), cacheOptionCases(), informerCases(), ownWriteCases())
}

func cacheReadCases() []testCase {
	key := func(ns, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: ns, Name: name}
	}
	list := func(t *testing.T, o *outcome, c client.Reader, opts ...client.ListOption) {
		var l corev1.ConfigMapList
		err := c.List(soon(t, patience), &l, opts...)
		o.note("list", fmt.Sprint(named(l.Items), " ", verdict(err)))
	}
	byData := func(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["key"]} }
	return []testCase{
		{"cache", "read before the start", "", func(t *testing.T, o *outcome) {
			c, err := cache.New(server, cache.Options{})
			must(t, err)
			o.note("get", c.Get(soon(t, patience), key("default", "a"), &corev1.ConfigMap{}))
			o.note("list", c.List(soon(t, patience), &corev1.ConfigMapList{}))
		}},
		cached("get", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			var cm corev1.ConfigMap
			o.note("a", c.Get(t.Context(), key(ns, "a"), &cm))
			o.note("data", cm.Data)
			o.note("absent", c.Get(t.Context(), key(ns, "z"), &cm))
		}),
		cached("get in each form", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			for _, f := range forms {
				obj := f.obj("", "")
				o.note(f.name, c.Get(t.Context(), key(ns, "a"), obj))
				o.note("kind", obj.GetObjectKind().GroupVersionKind().Kind)
				o.note("labels", obj.GetLabels())
			}
		}),
		cached("list", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			list(t, o, c)
			list(t, o, c, client.InNamespace(ns), client.MatchingLabels{"x": "1"})
			list(t, o, c, client.HasLabels{"x"})
			list(t, o, c, client.MatchingLabels{"x": "2"})
		}),
		cached("list replaces what the list held", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			l := corev1.ConfigMapList{Items: []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "old"}}}}
			o.note("list", c.List(t.Context(), &l))
			o.note("items", named(l.Items))
		}),
		cached("list in each form", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			for _, f := range forms {
				l := f.list()
				o.note(f.name, c.List(t.Context(), l))
				o.note("items", len(strings.Fields(items(t, l))))
			}
		}),
		cached("list pages", "a cached list goes on by the token it gave; controller-runtime's token says that it cannot", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			var l corev1.ConfigMapList
			o.note("list", c.List(t.Context(), &l, client.Limit(2)))
			o.note("items", len(l.Items))
			token := l.Continue
			o.note("with the token", c.List(t.Context(), &l, client.Limit(2), client.Continue(token)))
			o.note("items", len(l.Items))
		}),
		cached("list with a token of nobody", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			o.note("refused", c.List(t.Context(), &corev1.ConfigMapList{}, client.Continue("x")) != nil)
		}),
		cached("list is sorted", "the server's order; controller-runtime's is a map's", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			for i := range 20 {
				configMap(t, ns, fmt.Sprintf("n%02d", (i*7)%20), nil)
			}
			var l corev1.ConfigMapList
			within(patience, func() bool { return c.List(t.Context(), &l) == nil && len(l.Items) == 23 })
			sorted := slices.IsSortedFunc(l.Items, func(a, b corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
			o.note("items", len(l.Items))
			o.note("sorted", sorted)
		}),
		cached("what is read is a copy", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			var cm corev1.ConfigMap
			must(t, c.Get(t.Context(), key(ns, "a"), &cm))
			cm.Data["key"] = "changed"
			must(t, c.Get(t.Context(), key(ns, "a"), &cm))
			o.note("data", cm.Data)
		}),
		cached("reads without a copy", "", func(ns string, opts *cache.Options) { opts.DefaultUnsafeDisableDeepCopy = new(true) }, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			var one, two corev1.ConfigMap
			must(t, c.Get(t.Context(), key(ns, "a"), &one))
			must(t, c.Get(t.Context(), key(ns, "a"), &two))
			one.Data["shared"] = "1"
			o.note("same map", two.Data["shared"] == "1")
		}),
		cached("one list without a copy", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			var one, two corev1.ConfigMapList
			must(t, c.List(t.Context(), &one, client.UnsafeDisableDeepCopy))
			must(t, c.List(t.Context(), &two, client.UnsafeDisableDeepCopy))
			one.Items[0].Data["shared"] = "1"
			shared := 0
			for _, cm := range two.Items {
				shared += len(cm.Data["shared"])
			}
			o.note("same map", shared == 1)
		}),
		cached("list by an index", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			o.note("index", c.IndexField(t.Context(), &corev1.ConfigMap{}, "key", byData))
			list(t, o, c, client.MatchingFields{"key": "value"})
			list(t, o, c, client.MatchingFields{"key": "other"})
			list(t, o, c, client.InNamespace(ns), client.MatchingFields{"key": "value"}, client.MatchingLabels{"x": "1"})
		}),
		cached("list by a field without an index", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			list(t, o, c, client.MatchingFields{"key": "value"})
		}),
		cached("list by two indexed fields", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			must(t, c.IndexField(t.Context(), &corev1.ConfigMap{}, "key", byData))
			must(t, c.IndexField(t.Context(), &corev1.ConfigMap{}, "name", func(obj client.Object) []string { return []string{obj.GetName()} }))
			list(t, o, c, client.MatchingFields{"key": "value", "name": "b"})
		}),
		cached("list by a field's inequality", "a field selector may say !=, as on the server", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			must(t, c.IndexField(t.Context(), &corev1.ConfigMap{}, "name", func(obj client.Object) []string { return []string{obj.GetName()} }))
			list(t, o, c, client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("name", "b")})
		}),
		cached("the same index twice", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			o.note("first", c.IndexField(t.Context(), &corev1.ConfigMap{}, "key", byData))
			o.note("second is refused", c.IndexField(t.Context(), &corev1.ConfigMap{}, "key", byData) != nil)
		}),
		cached("changes arrive", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			var cm corev1.ConfigMap
			must(t, c.Get(t.Context(), key(ns, "a"), &cm))
			configMap(t, ns, "d", nil)
			o.note("created", within(patience, func() bool { return c.Get(t.Context(), key(ns, "d"), &cm) == nil }))
			must(t, truth.CoreV1().ConfigMaps(ns).Delete(t.Context(), "d", metav1.DeleteOptions{}))
			o.note("deleted", within(patience, func() bool { return c.Get(t.Context(), key(ns, "d"), &cm) != nil }))
		}),
		cached("custom objects", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			live := newClient(t)
			must(t, live.Create(t.Context(), widget(ns, "w")))
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(widgetKind)
			o.note("get", c.Get(t.Context(), key(ns, "w"), u))
			o.note("size", u.Object["spec"])
		}),
		cached("a kind that the server does not have", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"})
			o.note("get", c.Get(soon(t, patience), key(ns, "w"), u))
		}),
		cached("a Go type that the scheme does not know", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			o.note("get", c.Get(soon(t, patience), key(ns, "w"), &foreign{}))
		}),
		cached("read outside of the cache's namespaces", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			o.note("get is refused", c.Get(t.Context(), key("default", "a"), &corev1.ConfigMap{}) != nil)
			o.note("list is refused", c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default")) != nil)
		}),
		cached("cluster-scoped kind: list with a namespace", "the namespace means nothing for such a kind, as on the server", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			var l corev1.NamespaceList
			err := c.List(soon(t, patience), &l, client.InNamespace(ns))
			o.note("error", err)
			o.note("some", len(l.Items) > 0)
		}),
		cached("cluster-scoped kind: get", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			o.note("get", c.Get(soon(t, patience), types.NamespacedName{Name: ns}, &corev1.Namespace{}))
		}),
		{"cache", "a forbidden kind", "a read waits for a filled store, or for the server's refusal; controller-runtime goes on trying in silence", func(t *testing.T, o *outcome) {
			c := running(t, wire(func(r *http.Request) *http.Response {
				if strings.Contains(r.URL.Path, "/secrets") {
					return refusal(r)
				}
				return nil
			}), cache.Options{})
			o.note("get", c.Get(soon(t, 10*time.Second), key("default", "a"), &corev1.Secret{}))
		}},
		{"cache", "typed and metadata reads of one kind", "one store, filled once for the fuller form, so the two agree", func(t *testing.T, o *outcome) {
			ns := namespace(t)
			configMap(t, ns, "a", nil)
			var watches counter
			c := running(t, wire(func(r *http.Request) *http.Response {
				if isWatch(r) {
					watches.add("configmaps")
				}
				return nil
			}), cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}})
			must(t, c.Get(t.Context(), key(ns, "a"), &corev1.ConfigMap{}))
			must(t, c.Get(t.Context(), key(ns, "a"), forms[2].obj("", "")))
			within(patience, func() bool { return watches.of("configmaps") > 0 })
			time.Sleep(quiet)
			o.note("watches", watches.of("configmaps"))
		}},
	}
}

func cacheOptionCases() []testCase {
	seen := func(t *testing.T, o *outcome, c cache.Cache) {
		var l corev1.ConfigMapList
		o.note("list", c.List(soon(t, patience), &l))
		o.note("items", named(l.Items))
	}
	mark := func(value string) toolscache.TransformFunc {
		return func(obj any) (any, error) {
			if cm, ok := obj.(*corev1.ConfigMap); ok {
				cm.Data = map[string]string{"by": value}
			}
			return obj, nil
		}
	}
	data := func(t *testing.T, o *outcome, c cache.Cache, ns string) {
		var cm corev1.ConfigMap
		o.note("get", c.Get(soon(t, patience), types.NamespacedName{Namespace: ns, Name: "a"}, &cm))
		o.note("data", cm.Data)
	}
	x := labels.SelectorFromSet(labels.Set{"x": "1"})
	return []testCase{
		cached("a label selector for all kinds", "", func(ns string, opts *cache.Options) { opts.DefaultLabelSelector = x }, func(t *testing.T, o *outcome, c cache.Cache, ns string) { seen(t, o, c) }),
		cached("a label selector for a kind", "", func(ns string, opts *cache.Options) {
			opts.ByObject = map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: x}}
		}, func(t *testing.T, o *outcome, c cache.Cache, ns string) { seen(t, o, c) }),
		cached("a field selector for a kind", "", func(ns string, opts *cache.Options) {
			opts.ByObject = map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Field: fields.OneTermEqualSelector("metadata.name", "b")}}
		}, func(t *testing.T, o *outcome, c cache.Cache, ns string) { seen(t, o, c) }),
		cached("a label selector for a namespace", "", func(ns string, opts *cache.Options) {
			opts.DefaultNamespaces = map[string]cache.Config{ns: {LabelSelector: x}}
		}, func(t *testing.T, o *outcome, c cache.Cache, ns string) { seen(t, o, c) }),
		cached("a kind's namespaces before the default ones", "", func(ns string, opts *cache.Options) {
			opts.DefaultNamespaces = map[string]cache.Config{"default": {}}
			opts.ByObject = map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{ns: {}}}}
		}, func(t *testing.T, o *outcome, c cache.Cache, ns string) { seen(t, o, c) }),
		cached("two namespaces", "", func(ns string, opts *cache.Options) {
			opts.DefaultNamespaces = map[string]cache.Config{ns: {}, "kube-public": {}}
		}, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			seen(t, o, c)
			data(t, o, c, ns)
			o.note("absent", c.Get(t.Context(), types.NamespacedName{Namespace: "kube-public", Name: "a"}, &corev1.ConfigMap{}))
		}),
		cached("all namespaces beside a selected one", "", func(ns string, opts *cache.Options) {
			opts.DefaultNamespaces = map[string]cache.Config{ns: {LabelSelector: x}, cache.AllNamespaces: {LabelSelector: labels.SelectorFromSet(labels.Set{"nobody": "has"})}}
		}, func(t *testing.T, o *outcome, c cache.Cache, ns string) { seen(t, o, c) }),
		cached("a transform for all kinds", "", func(ns string, opts *cache.Options) { opts.DefaultTransform = mark("default") }, data),
		cached("a transform for a kind before the default one", "", func(ns string, opts *cache.Options) {
			opts.DefaultTransform = mark("default")
			opts.ByObject = map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Transform: mark("kind")}}
		}, data),
		cached("managed fields stripped", "", func(ns string, opts *cache.Options) { opts.DefaultTransform = cache.TransformStripManagedFields() }, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			var cm corev1.ConfigMap
			o.note("get", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, &cm))
			o.note("managed fields", len(cm.ManagedFields))
		}),
		cached("reads without an informer fail", "", func(ns string, opts *cache.Options) { opts.ReaderFailOnMissingInformer = true }, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			o.note("get", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, &corev1.ConfigMap{}))
			_, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
			o.note("informer", err)
			o.note("get", c.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "a"}, &corev1.ConfigMap{}))
		}),
	}
}

// hears counts what a handler is told.
func hears(n *counter) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { n.add("added") },
		UpdateFunc: func(any, any) { n.add("updated") },
		DeleteFunc: func(any) { n.add("deleted") },
	}
}

func informerCases() []testCase {
	return []testCase{
		cached("a handler hears of what is there and what changes", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			inf, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
			must(t, err)
			var n counter
			_, err = inf.AddEventHandler(hears(&n))
			must(t, err)
			o.note("3 added", within(patience, func() bool { return n.of("added") == 3 }))
			cm := stored(t, ns, "a")
			cm.Data = nil
			must(t, newClient(t).Update(t.Context(), cm))
			o.note("updated", within(patience, func() bool { return n.of("updated") == 1 }))
			must(t, newClient(t).Delete(t.Context(), cm))
			o.note("deleted", within(patience, func() bool { return n.of("deleted") == 1 }))
		}),
		cached("a removed handler hears nothing", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			inf, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
			must(t, err)
			var n, stays counter
			_, err = inf.AddEventHandler(hears(&stays))
			must(t, err)
			h, err := inf.AddEventHandler(hears(&n))
			must(t, err)
			within(patience, func() bool { return n.of("added") == 3 })
			o.note("remove", inf.RemoveEventHandler(h))
			configMap(t, ns, "d", nil)
			within(patience, func() bool { return stays.of("added") == 4 })
			time.Sleep(quiet)
			o.note("added", n.of("added"))
		}),
		cached("a removed informer", "", nil, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			inf, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
			must(t, err)
			o.note("remove", c.RemoveInformer(t.Context(), &corev1.ConfigMap{}))
			o.note("stopped", within(patience, inf.IsStopped))
			o.note("a read makes a new one", c.Get(soon(t, patience), types.NamespacedName{Namespace: ns, Name: "a"}, &corev1.ConfigMap{}))
		}),
		cached("an informer by kind", "", func(_ string, opts *cache.Options) { opts.DefaultNamespaces = nil }, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			_, err := c.GetInformerForKind(t.Context(), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			o.note("a known kind", err)
			_, err = c.GetInformerForKind(t.Context(), schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Foreign"})
			o.note("an unknown one", err)
		}),
		cached("resyncs", "", func(ns string, opts *cache.Options) {
			opts.ByObject = map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {SyncPeriod: new(1200 * time.Millisecond)}}
		}, func(t *testing.T, o *outcome, c cache.Cache, ns string) {
			inf, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
			must(t, err)
			var n counter
			_, err = inf.AddEventHandler(hears(&n))
			must(t, err)
			o.note("updates without a change", within(patience, func() bool { return n.of("updated") >= 6 }))
		}),
		{"cache", "an informer asked for before the start", "", func(t *testing.T, o *outcome) {
			c, err := cache.New(server, cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}})
			must(t, err)
			inf, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
			o.note("get", err)
			o.note("synced", inf.HasSynced())
		}},
		{"cache", "a cancelled wait for the start", "", func(t *testing.T, o *outcome) {
			c, err := cache.New(server, cache.Options{})
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			o.note("synced", c.WaitForCacheSync(ctx))
		}},
	}
}

// lag is how late the watches of delayed are. What a case does between its write and its read must take less, and a machine that
// does other things takes its time.
const lag = 6 * time.Second

// delayed is a config whose watches show nothing for a while.
func delayed(by time.Duration) *rest.Config {
	c := rest.CopyConfig(server)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && isWatch(r) {
				resp.Body = &late{resp.Body, by, bytes.Buffer{}}
			}
			return resp, err
		})
	})
	return c
}

// late hands out what it reads after a while.
type late struct {
	io.ReadCloser
	by   time.Duration
	rest bytes.Buffer
}

func (l *late) Read(p []byte) (int, error) {
	if l.rest.Len() == 0 {
		b := make([]byte, 1<<16)
		n, err := l.ReadCloser.Read(b)
		if n == 0 {
			return 0, err
		}
		time.Sleep(l.by)
		l.rest.Write(b[:n])
	}
	return l.rest.Read(p)
}

// ownWrites is a case with the client of a cluster whose watches lag.
func ownWrites(name, why string, consistent *bool, run func(t *testing.T, o *outcome, c client.Client, ns string)) testCase {
	return testCase{"cache", name, why, func(t *testing.T, o *outcome) {
		ns := namespace(t)
		configMap(t, ns, "a", nil)
		cl, err := cluster.New(delayed(lag), func(opts *cluster.Options) {
			opts.Cache.DefaultNamespaces = map[string]cache.Config{ns: {}}
			opts.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: consistent}
		})
		must(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = cl.Start(ctx)
		}()
		defer func() {
			cancel()
			<-ended
		}()
		if !cl.GetCache().WaitForCacheSync(ctx) {
			t.Fatal("the cache did not start")
		}
		c := cl.GetClient()
		must(t, c.Get(ctx, types.NamespacedName{Namespace: ns, Name: "a"}, &corev1.ConfigMap{}))
		run(t, o, c, ns)
	}}
}

func ownWriteCases() []testCase {
	at := func(ns, name string) types.NamespacedName { return types.NamespacedName{Namespace: ns, Name: name} }
	unasked := "a manager's client reads its own writes, without waiting for the watch; switch it off by EnableReadYourWritesConsistency"
	return []testCase{
		ownWrites("by default: get after update", unasked, nil, func(t *testing.T, o *outcome, c client.Client, ns string) {
			cm := newConfigMap(ns, "a", nil)
			cm.Data["key"] = "new"
			must(t, c.Update(t.Context(), cm))
			var now corev1.ConfigMap
			o.note("get", c.Get(t.Context(), at(ns, "a"), &now))
			o.note("data", now.Data)
		}),
		ownWrites("by default: get after create", unasked, nil, func(t *testing.T, o *outcome, c client.Client, ns string) {
			must(t, c.Create(t.Context(), newConfigMap(ns, "b", nil)))
			o.note("get", c.Get(t.Context(), at(ns, "b"), &corev1.ConfigMap{}))
		}),
		ownWrites("by default: list after delete", unasked, nil, func(t *testing.T, o *outcome, c client.Client, ns string) {
			must(t, c.Delete(t.Context(), newConfigMap(ns, "a", nil)))
			var l corev1.ConfigMapList
			o.note("list", c.List(t.Context(), &l))
			o.note("items", named(l.Items))
		}),
		ownWrites("switched off: get after update", "", new(false), func(t *testing.T, o *outcome, c client.Client, ns string) {
			cm := newConfigMap(ns, "a", nil)
			cm.Data["key"] = "new"
			must(t, c.Update(t.Context(), cm))
			var now corev1.ConfigMap
			o.note("get", c.Get(t.Context(), at(ns, "a"), &now))
			o.note("data", now.Data)
		}),
		ownWrites("switched on: get after update", "", new(true), func(t *testing.T, o *outcome, c client.Client, ns string) {
			cm := newConfigMap(ns, "a", nil)
			cm.Data["key"] = "new"
			must(t, c.Update(t.Context(), cm))
			var now corev1.ConfigMap
			o.note("get", c.Get(t.Context(), at(ns, "a"), &now))
			o.note("data", now.Data)
		}),
		ownWrites("switched on: a get does not wait for the watch", "the answer to the write is read; controller-runtime waits until the watch has shown it", new(true), func(t *testing.T, o *outcome, c client.Client, ns string) {
			cm := newConfigMap(ns, "a", nil)
			cm.Data["key"] = "new"
			must(t, c.Update(t.Context(), cm))
			began := time.Now()
			o.note("get", c.Get(t.Context(), at(ns, "a"), &corev1.ConfigMap{}))
			o.note("at once", time.Since(began) < lag/2)
		}),
		ownWrites("switched on: delete a collection", "a hole is left for each object, and settled by the next read", new(true), func(t *testing.T, o *outcome, c client.Client, ns string) {
			o.note("refused", c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(ns)) != nil)
		}),
		ownWrites("unstructured reads are live unless asked for", "", nil, func(t *testing.T, o *outcome, c client.Client, ns string) {
			configMap(t, ns, "b", nil) // not by this client, and not shown by the watch yet
			o.note("typed", c.Get(t.Context(), at(ns, "b"), &corev1.ConfigMap{}))
			o.note("unstructured", c.Get(t.Context(), at(ns, "b"), forms[1].obj("", "")))
		}),
	}
}
