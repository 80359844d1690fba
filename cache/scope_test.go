// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

var configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

func sel(kv string) labels.Selector {
	s, err := labels.Parse(kv)
	if err != nil {
		panic(err)
	}
	return s
}

func TestPrecedence(t *testing.T) {
	yes, no := true, false
	hour, minute := time.Hour, time.Minute
	opts := Options{
		DefaultLabelSelector: sel("level=default"), DefaultFieldSelector: fields.OneTermEqualSelector("f", "default"),
		DefaultUnsafeDisableDeepCopy: &yes, SyncPeriod: &hour,
		DefaultNamespaces: map[string]Config{"a": {LabelSelector: sel("level=ns"), EnableWatchBookmarks: &no}, "b": {}},
		ByObject: map[client.Object]ByObject{
			&corev1.ConfigMap{}: {
				Label: sel("level=kind"), SyncPeriod: &minute,
				Namespaces: map[string]Config{"a": {LabelSelector: sel("level=kind-ns")}, "c": {FieldSelector: fields.Everything(), UnsafeDisableDeepCopy: &no}},
			},
			&corev1.Pod{}:  {Label: sel("level=kind")},
			&corev1.Node{}: {Field: fields.OneTermEqualSelector("f", "node")},
		},
	}
	s, err := settle(&opts, apiutil.DefaultScheme())
	if err != nil {
		t.Fatal(err)
	}
	show := func(kind string, namespaced bool) (out []string) {
		scopes, err := s.scopes(corev1.SchemeGroupVersion.WithKind(kind), structured, namespaced)
		if err != nil {
			t.Fatal(err)
		}
		for _, sc := range scopes {
			out = append(out, fmt.Sprintf("%s|%s|%s|share=%v|marks=%v|%s", sc.namespace, sc.label, sc.field, sc.share, sc.bookmarks, sc.syncPeriod))
		}
		return out
	}
	for _, c := range []struct {
		kind       string
		namespaced bool
		want       []string
	}{
		{"ConfigMap", true, []string{"a|level=kind-ns|f=default|share=true|marks=false|1m0s", "c|level=kind||share=false|marks=true|1m0s"}},
		{"Pod", true, []string{"a|level=kind|f=default|share=true|marks=false|1h0m0s", "b|level=kind|f=default|share=true|marks=true|1h0m0s"}},
		{"Secret", true, []string{"a|level=ns|f=default|share=true|marks=false|1h0m0s", "b|level=default|f=default|share=true|marks=true|1h0m0s"}},
		{"Node", false, []string{"|level=default|f=node|share=true|marks=true|1h0m0s"}},
	} {
		if got := show(c.kind, c.namespaced); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.kind, got, c.want)
		}
	}
	want(t, len(opts.DefaultNamespaces), 2) // options are never changed (upstream's #3078)
}

func TestNamespacesForAKindWithout(t *testing.T) {
	s := newServer()
	_, err := New(s.config(), Options{HTTPClient: s.httpClient(), Mapper: s.mapper(),
		ByObject: map[client.Object]ByObject{&corev1.Node{}: {Namespaces: map[string]Config{"a": {}}}}})
	if err == nil || !strings.Contains(err.Error(), "Node") {
		t.Fatalf("got %v", err)
	}
}

func threeMaps(s *server, t *testing.T) {
	s.put(t, object("configmaps", "a", "m1", labelled("x", "1")))
	s.put(t, object("configmaps", "a", "m2", nil))
	s.put(t, object("configmaps", "b", "m3", nil))
}

func TestUnlistedNamespace(t *testing.T) { // CA-5, cache 1
	within(t, func(t *testing.T) {
		s := newServer()
		threeMaps(s, t)
		r := newRig(t, Options{DefaultNamespaces: map[string]Config{"a": {}}}, s)
		want(t, mustList(t, r.client), "[a/m1 a/m2]")
		for _, err := range []error{
			r.client.Get(t.Context(), key("b", "m3"), configMap("", "")),
			r.client.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("b")),
		} {
			if err == nil || apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `"b"`) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestAllNamespacesBesideANamedOne(t *testing.T) { // CA-5, cache 2
	for _, second := range []bool{false, true} {
		within(t, func(t *testing.T) {
			s := newServer()
			threeMaps(s, t)
			namespaces := map[string]Config{"a": {LabelSelector: sel("x=1")}, AllNamespaces: {}}
			if second {
				namespaces["b"] = Config{}
			}
			r := newRig(t, Options{DefaultNamespaces: namespaces}, s)
			want(t, mustList(t, r.client), "[a/m1 b/m3]")
			want(t, mustList(t, r.client, client.InNamespace("a")), "[a/m1]")
			want(t, mustList(t, r.client, client.InNamespace("b")), "[b/m3]")
			want(t, r.get(t, "a", "m2") == nil, true)
			want(t, r.get(t, "b", "m3") != nil, true)

			inf, err := r.cache.GetInformer(t.Context(), &corev1.ConfigMap{})
			if err != nil {
				t.Fatal(err)
			}
			var heard []string
			_, err = inf.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
				heard = append(heard, o.(*corev1.ConfigMap).Name)
			}})
			if err != nil {
				t.Fatal(err)
			}
			s.put(t, object("configmaps", "c", "m4", nil))
			s.put(t, object("configmaps", "a", "m5", labelled("x", "1")))
			s.put(t, object("configmaps", "a", "m6", nil))
			synctest.Wait()
			slices.Sort(heard)
			want(t, heard, "[m1 m3 m4 m5]")

			// Pages run over all stores in one order.
			var pages []string
			var list corev1.ConfigMapList
			for {
				if err := r.client.List(t.Context(), &list, client.Limit(2), client.Continue(list.Continue)); err != nil {
					t.Fatal(err)
				}
				pages = append(pages, fmt.Sprint(names(&list)))
				if list.Continue == "" {
					break
				}
			}
			want(t, pages, "[[a/m1 a/m5] [b/m3 c/m4]]")

			// Own writes go to the store that holds the namespace.
			s.hold("configmaps")
			if err := r.client.Create(t.Context(), configMap("a", "unlabelled")); err != nil {
				t.Fatal(err)
			}
			if err := r.client.Create(t.Context(), configMap("d", "fresh")); err != nil {
				t.Fatal(err)
			}
			want(t, mustList(t, r.client), "[a/m1 a/m5 b/m3 c/m4 d/fresh]")
			s.release("configmaps")
		})
	}
}

// newSpelled returns an object and a list of ClusterRole in each form.
func clusterRoles(form apiutil.Form) (client.Object, client.ObjectList) {
	gvk := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	switch form {
	case apiutil.Unstructured:
		o, l := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
		o.SetGroupVersionKind(gvk)
		l.SetGroupVersionKind(apiutil.ListKind(gvk))
		return o, l
	case apiutil.Metadata:
		o, l := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
		o.SetGroupVersionKind(gvk)
		l.SetGroupVersionKind(apiutil.ListKind(gvk))
		return o, l
	}
	return &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleList{}
}

func TestNamespaceGivenForAKindWithout(t *testing.T) { // CA-2
	for _, namespaces := range []map[string]Config{nil, {"a": {}, "b": {}}} {
		for _, form := range []apiutil.Form{apiutil.Typed, apiutil.Unstructured, apiutil.Metadata} {
			within(t, func(t *testing.T) {
				s := newServer()
				s.put(t, object("clusterroles", "", "cr1", labelled("t", "x")))
				s.put(t, object("clusterroles", "", "cr2", nil))
				r := newRig(t, Options{DefaultNamespaces: namespaces}, s)
				obj, list := clusterRoles(form)
				err := r.cache.IndexField(t.Context(), obj, "t", func(o client.Object) []string { return []string{o.GetLabels()["t"]} })
				if err != nil {
					t.Fatal(err)
				}
				inA := client.NewNamespacedClient(r.client, "a")
				for name, reader := range map[string]client.Reader{"cached": r.client, "namespaced": inA, "live": r.live} {
					for _, copyless := range []bool{false, true} {
						if err := reader.Get(t.Context(), key("a", "cr1"), obj, client.UnsafeDisableDeepCopyOption(copyless)); err != nil {
							t.Fatalf("%s %s: %v", name, form, err)
						}
						want(t, obj.GetName(), "cr1")
						count := func(opts ...client.ListOption) int {
							t.Helper()
							if err := reader.List(t.Context(), list, append(opts, client.UnsafeDisableDeepCopyOption(copyless))...); err != nil {
								t.Fatalf("%s %s: %v", name, form, err)
							}
							n := 0
							_ = eachItem(list, func(o client.Object) { n++ })
							return n
						}
						want(t, count(client.InNamespace("a")), 2)
						want(t, count(client.InNamespace("a"), client.MatchingLabels{"t": "x"}), 1)
						if name != "live" {
							want(t, count(client.InNamespace("a"), client.MatchingFields{"t": "x"}), 1)
						}
					}
				}
			})
		}
	}
}

func eachItem(list client.ObjectList, f func(client.Object)) error {
	objs, err := extract(list)
	for _, o := range objs {
		f(o.(client.Object))
	}
	return err
}

func TestIndexes(t *testing.T) { // CA-3
	byNode := func(o client.Object) []string { return []string{o.(*corev1.ConfigMap).Data["node"]} }
	on := func(ns, name, node string) map[string]any {
		return object("configmaps", ns, name, map[string]any{"data": map[string]any{"node": node}})
	}
	for _, namespaces := range []map[string]Config{nil, {"a": {}, "b": {}}} {
		within(t, func(t *testing.T) {
			s := newServer()
			for i, o := range []map[string]any{on("a", "p1", "n1"), on("a", "p2", "n2"), on("b", "p3", "n1"), on("b", "p4", "n2"), on("b", "p5", "n1")} {
				_ = i
				s.put(t, o)
			}
			r := newStoppedRig(t, Options{DefaultNamespaces: namespaces}, s)
			if err := r.cache.IndexField(t.Context(), &corev1.ConfigMap{}, "node", byNode); err != nil {
				t.Fatal(err)
			}
			wrong := func(client.Object) []string { return []string{"n1"} }
			err := r.cache.IndexField(t.Context(), &corev1.ConfigMap{}, "node", wrong)
			if err == nil || !strings.HasPrefix(err.Error(), "indexer conflict") || !strings.Contains(err.Error(), "node") || !strings.Contains(err.Error(), "ConfigMap") {
				t.Fatalf("got %v", err)
			}
			r.start()
			want(t, mustList(t, r.client, client.MatchingFields{"node": "n1"}), "[a/p1 b/p3 b/p5]")
			want(t, mustList(t, r.client, client.MatchingFields{"node": "n1"}, client.InNamespace("b")), "[b/p3 b/p5]")
			want(t, mustList(t, r.client, client.MatchingFields{"node": "none"}), "[]")

			// An index added later covers what is there and what comes.
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := range 50 {
					s.put(t, on("a", fmt.Sprintf("q%02d", i), "n1"))
				}
			}()
			err = r.cache.IndexField(t.Context(), &corev1.ConfigMap{}, "phase", func(o client.Object) []string { return []string{"any"} })
			if err != nil {
				t.Fatal(err)
			}
			if got := mustList(t, r.client, client.MatchingFields{"phase": "any"}); len(got) < 5 {
				t.Fatalf("got %v", got)
			}
			<-done
			synctest.Wait()
			want(t, len(mustList(t, r.client, client.MatchingFields{"phase": "any"})), 55)
			both := client.MatchingFields{"phase": "any", "node": "n2"}
			want(t, mustList(t, r.client, both), "[a/p2 b/p4]")
			not := client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("node", "n1")}
			want(t, mustList(t, r.client, not), "[a/p2 b/p4]")
			want(t, mustList(t, r.client, client.MatchingFields{"metadata.name": "p3"}), "[b/p3]")

			err = r.client.List(t.Context(), &corev1.ConfigMapList{}, client.MatchingFields{"nothing": "x"}, client.InNamespace("a"))
			if err == nil || !strings.Contains(err.Error(), "nothing") || !strings.Contains(err.Error(), "IndexField") || !strings.Contains(err.Error(), `"a"`) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestIndexFunctionThatPanics(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("configmaps", "a", "good", nil))
		s.put(t, object("configmaps", "a", "bad", nil))
		r := newRig(t, Options{}, s)
		err := r.cache.IndexField(t.Context(), &corev1.ConfigMap{}, "f", func(o client.Object) []string {
			if o.GetName() == "bad" {
				panic("boom")
			}
			return []string{"v"}
		})
		if err != nil {
			t.Fatal(err)
		}
		err = r.client.List(ctx10(t), &corev1.ConfigMapList{}, client.MatchingFields{"f": "v"})
		if err == nil || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), "a/bad") {
			t.Fatalf("got %v", err)
		}
		want(t, mustList(t, r.client), "[a/bad a/good]") // other reads go on
		s.remove("configmaps", "a", "bad")
		synctest.Wait()
		want(t, mustList(t, r.client, client.MatchingFields{"f": "v"}), "[a/good]")
	})
}

func TestTransformThatFails(t *testing.T) {
	for name, transform := range map[string]toolscache.TransformFunc{
		"error": func(any) (any, error) { return nil, errors.New("boom") },
		"type":  func(any) (any, error) { return &corev1.Pod{}, nil },
	} {
		within(t, func(t *testing.T) {
			s := newServer()
			s.put(t, object("configmaps", "a", "m", nil))
			r := newRig(t, Options{DefaultTransform: transform}, s)
			err := r.client.List(ctx10(t), &corev1.ConfigMapList{})
			if err == nil || !strings.Contains(err.Error(), "ConfigMap") || !strings.Contains(err.Error(), "a/m") {
				t.Fatalf("%s: got %v", name, err)
			}
		})
	}
}

func TestStripManagedFields(t *testing.T) {
	m := configMap("a", "m")
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
	out, err := TransformStripManagedFields()(m)
	if err != nil || out.(*corev1.ConfigMap).ManagedFields != nil {
		t.Fatal(out, err)
	}
	if out, err := TransformStripManagedFields()("no object"); err != nil || out != "no object" {
		t.Fatal(out, err)
	}
}

// Typed and metadata reads share one store; whole objects take over when somebody asks for them.
func TestMetadataThenTyped(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("configmaps", "a", "m", with(labelled("x", "1"), map[string]any{"data": map[string]any{"k": "v"}})))
		r := newRig(t, Options{}, s)
		meta := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
		inf, err := r.cache.GetInformer(t.Context(), meta)
		if err != nil {
			t.Fatal(err)
		}
		err = r.cache.IndexField(t.Context(), meta, "x", func(o client.Object) []string {
			return []string{o.(*metav1.PartialObjectMetadata).Labels["x"]}
		})
		if err != nil {
			t.Fatal(err)
		}
		var heard []string
		_, err = inf.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { heard = append(heard, "add "+o.(*metav1.PartialObjectMetadata).Name) },
			UpdateFunc: func(_, o any) {
				heard = append(heard, "update "+o.(*metav1.PartialObjectMetadata).Name)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p := onlyPart(t, r, "ConfigMap")
		want(t, fmt.Sprintf("%T", p.store.get("a/m")), "*v1.PartialObjectMetadata")

		want(t, r.get(t, "a", "m").Data["k"], "v")
		synctest.Wait()
		p = onlyPart(t, r, "ConfigMap")
		want(t, fmt.Sprintf("%T", p.store.get("a/m")), "*v1.ConfigMap")
		s.put(t, object("configmaps", "a", "m", labelled("x", "2")))
		s.put(t, object("configmaps", "a", "n", labelled("x", "2")))
		synctest.Wait()
		want(t, heard, "[add m update m add n]")
		want(t, s.count("WATCH configmaps"), 2)

		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
		if err := r.client.List(t.Context(), list, client.MatchingFields{"x": "2"}); err != nil {
			t.Fatal(err)
		}
		want(t, len(list.Items), 2)
		want(t, list.Items[0].Kind, "ConfigMap")
		want(t, inf.HasSynced(), true)
	})
}

// A kind that gets a second store says so once, with what to do about it; a second form of the same store says nothing.
func TestSecondStoreIsSaidOnce(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("configmaps", "a", "m", nil))
		r := newRig(t, Options{}, s)
		var lines []string
		r.cache.log = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		for range 2 {
			for _, obj := range []client.Object{&metav1.PartialObjectMetadata{}, &corev1.ConfigMap{}, &unstructured.Unstructured{}} {
				obj.GetObjectKind().SetGroupVersionKind(configMapKind)
				if err := r.client.Get(t.Context(), key("a", "m"), obj); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(lines) != 1 || !strings.Contains(lines[0], "ConfigMap") || !strings.Contains(lines[0], "cached twice") || !strings.Contains(lines[0], "DisableFor") {
			t.Errorf("the log says %q", lines)
		}
	})
}

// Of two indexes registered together, one of which is there already, the other is in no store of any namespace.
func TestIndexesAllOrNone(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		threeMaps(s, t)
		r := newRig(t, Options{DefaultNamespaces: map[string]Config{"a": {}, "b": {}}}, s)
		inf := r.informer(t, &corev1.ConfigMap{})
		constant := func(any) ([]string, error) { return []string{"v"}, nil }
		if err := inf.AddIndexers(toolscache.Indexers{"one": constant}); err != nil {
			t.Fatal(err)
		}
		err := inf.AddIndexers(toolscache.Indexers{"two": constant, "one": constant})
		if err == nil || !strings.HasPrefix(err.Error(), "indexer conflict") {
			t.Errorf("got %v", err)
		}
		for _, p := range r.cache.all()[0].readParts() {
			want(t, slices.Sorted(maps.Keys(p.store.GetIndexers())), "[one]")
		}
		if err := inf.AddIndexers(toolscache.Indexers{"two": constant}); err != nil {
			t.Error(err)
		}
	})
}

func TestOtherListShapes(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("configmaps", "a", "m", map[string]any{"data": map[string]any{"k": "v"}}))
		r := newRig(t, Options{}, s)
		list := &pointerList{}
		list.SetGroupVersionKind(apiutil.ListKind(configMapKind))
		if err := r.cache.OfKind(configMapKind, apiutil.Typed).List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		want(t, list.Items[0].Data["k"], "v")
		list.Items[0].Data["k"] = "changed"
		want(t, r.get(t, "a", "m").Data["k"], "v")
		if err := r.cache.OfKind(configMapKind, apiutil.Typed).List(t.Context(), list, client.UnsafeDisableDeepCopy); err != nil {
			t.Fatal(err)
		}
		want(t, list.Items[0] == onlyPart(t, r, "ConfigMap").store.get("a/m"), true)
		wrong := &corev1.PodList{}
		if err := r.cache.OfKind(configMapKind, apiutil.Typed).List(t.Context(), wrong); err == nil {
			t.Fatal("ConfigMaps were listed as Pods")
		}
	})
}

// pointerList is a list with pointers for items, as some APIs have.
type pointerList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*corev1.ConfigMap
}

func (l *pointerList) DeepCopyObject() runtime.Object { return l }
