// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/test/apiserver/server"
	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// events reads as many events as are expected and returns each as "TYPE name@version", versions as given by label.
func events(t *testing.T, w watch.Interface, n int, label map[string]string) []string {
	t.Helper()
	var out []string
	for len(out) < n {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatalf("the watch ended after %v", out)
			}
			if e.Type == watch.Bookmark {
				continue
			}
			m, err := meta.Accessor(e.Object)
			if err != nil {
				t.Fatalf("%s %v", e.Type, e.Object)
			}
			at := label[m.GetResourceVersion()]
			if at == "" {
				at = m.GetResourceVersion()
			}
			out = append(out, fmt.Sprintf("%s %s@%s", e.Type, m.GetName(), at))
		case <-time.After(5 * time.Second):
			t.Fatalf("the watch saw %v only; %d events were due", out, n)
		}
	}
	return out
}

// TestObjectLeavesAWatchsSelector is case ST-2.
func TestObjectLeavesAWatchsSelector(t *testing.T) {
	for _, mode := range []file.Mode{file.Durable, file.Memory} {
		t.Run(mode.String(), func(t *testing.T) {
			s := serve(t, func(o *server.Options) {
				o.Storage = mode
				if mode != file.Memory {
					o.DataDir = t.TempDir()
				}
			})
			testSelectors(t, s.Config())
		})
	}
}

func testSelectors(t *testing.T, config *rest.Config) {
	c := clientFor(t, config)
	d, err := dynamic.NewForConfig(config)
	must(t, err)
	md, err := metadata.NewForConfig(config)
	must(t, err)
	list, err := c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	from := list.ResourceVersion
	byForm := map[string]func(metav1.ListOptions) (watch.Interface, error){
		"typed": func(o metav1.ListOptions) (watch.Interface, error) {
			return c.CoreV1().ConfigMaps("default").Watch(t.Context(), o)
		},
		"unstructured": func(o metav1.ListOptions) (watch.Interface, error) {
			return d.Resource(configMaps).Namespace("default").Watch(t.Context(), o)
		},
		"metadata": func(o metav1.ListOptions) (watch.Interface, error) {
			return md.Resource(configMaps).Namespace("default").Watch(t.Context(), o)
		},
	}
	open := map[string]watch.Interface{}
	begin := func(when, version string) {
		for form, watchOf := range byForm {
			for name, o := range map[string]metav1.ListOptions{
				"label": {LabelSelector: "app=x"}, "all": {}, "name": {FieldSelector: "metadata.name=c"},
			} {
				o.ResourceVersion = version
				w, err := watchOf(o)
				must(t, err)
				open[name+" "+form+" "+when] = w
			}
		}
	}
	begin("live", from)
	maps := c.CoreV1().ConfigMaps("default")
	label := map[string]string{}
	step := func(name string, m *core.ConfigMap, err error) *core.ConfigMap {
		must(t, err)
		label[m.ResourceVersion] = name
		return m
	}
	m := configMap("c")
	m.Labels = map[string]string{"app": "x"}
	m = step2(t, step, "r1")(maps.Create(t.Context(), m, metav1.CreateOptions{}))
	m.Data["k"] = "2"
	m = step2(t, step, "r2")(maps.Update(t.Context(), m, metav1.UpdateOptions{}))
	r2 := m.ResourceVersion
	m.Labels = nil
	m = step2(t, step, "r3")(maps.Update(t.Context(), m, metav1.UpdateOptions{}))
	m.Data["k"] = "4"
	m = step2(t, step, "r4")(maps.Update(t.Context(), m, metav1.UpdateOptions{}))
	m.Labels = map[string]string{"app": "x"}
	m = step2(t, step, "r5")(maps.Update(t.Context(), m, metav1.UpdateOptions{}))
	must(t, maps.Delete(t.Context(), "c", metav1.DeleteOptions{}))
	// A deletion's version is told by watches alone: one says it, and all others must agree.
	w, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: m.ResourceVersion})
	must(t, err)
	_, deletedAt, _ := strings.Cut(events(t, w, 1, nil)[0], "@")
	w.Stop()
	label[deletedAt] = "r6"
	begin("resumed", r2)

	full := []string{"ADDED c@r1", "MODIFIED c@r2", "MODIFIED c@r3", "MODIFIED c@r4", "MODIFIED c@r5", "DELETED c@r6"}
	selected := []string{"ADDED c@r1", "MODIFIED c@r2", "DELETED c@r3", "ADDED c@r5", "DELETED c@r6"}
	for name, w := range open {
		want := full
		if name[:5] == "label" {
			want = selected
		}
		if name[len(name)-7:] == "resumed" {
			want = want[2:]
		}
		if got := events(t, w, len(want), label); !slices.Equal(got, want) {
			t.Errorf("%s: %v; want %v", name, got, want)
		}
		w.Stop()
	}
}

func step2(t *testing.T, step func(string, *core.ConfigMap, error) *core.ConfigMap, name string) func(*core.ConfigMap, error) *core.ConfigMap {
	t.Helper()
	return func(m *core.ConfigMap, err error) *core.ConfigMap { return step(name, m, err) }
}

// TestWritesIntoATerminatingNamespace is the server's half of case ST-4.
func TestWritesIntoATerminatingNamespace(t *testing.T) {
	s := serve(t)
	c := clientFor(t, s.Config())
	w := define(t, s.Config(), "st4.example.com")
	newNamespace(t, c, "bye")
	first, err := c.CoreV1().Namespaces().Get(t.Context(), "bye", metav1.GetOptions{})
	must(t, err)
	held := configMap("f")
	held.Finalizers = []string{"example.com/hold"}
	held, err = c.CoreV1().ConfigMaps("bye").Create(t.Context(), held, metav1.CreateOptions{})
	must(t, err)
	_, err = w.Namespace("bye").Create(t.Context(), widget("st4.example.com", "w"), metav1.CreateOptions{})
	must(t, err)
	mapsSeen, err := c.CoreV1().ConfigMaps("bye").Watch(t.Context(), metav1.ListOptions{ResourceVersion: held.ResourceVersion})
	must(t, err)
	defer mapsSeen.Stop()
	widgetsSeen, err := w.Namespace("bye").Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer widgetsSeen.Stop()

	must(t, c.CoreV1().Namespaces().Delete(t.Context(), "bye", metav1.DeleteOptions{}))
	eventually(t, 5*time.Second, func() string {
		if apierrors.IsNotFound(second(w.Namespace("bye").Get(t.Context(), "w", metav1.GetOptions{}))) {
			return ""
		}
		return "the widget is still there"
	})
	for name, err := range map[string]error{
		"config map": second(c.CoreV1().ConfigMaps("bye").Create(t.Context(), configMap("n"), metav1.CreateOptions{})),
		"widget":     second(w.Namespace("bye").Create(t.Context(), widget("st4.example.com", "n"), metav1.CreateOptions{})),
		"event": second(c.CoreV1().Events("bye").Create(t.Context(), &core.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"},
			InvolvedObject: core.ObjectReference{Namespace: "bye", Name: "x"}}, metav1.CreateOptions{})),
	} {
		if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, core.NamespaceTerminatingCause) {
			t.Errorf("a new %s: %v; want Forbidden with the cause NamespaceTerminating", name, err)
		}
	}
	_, err = c.CoreV1().ConfigMaps("bye").Patch(t.Context(), "f", types.MergePatchType, []byte(`{"data":{"k":"late"}}`), metav1.PatchOptions{})
	must(t, err)
	if _, err := c.CoreV1().Namespaces().Get(t.Context(), "bye", metav1.GetOptions{}); err != nil {
		t.Errorf("the namespace went before its finalizer: %v", err)
	}
	_, err = c.CoreV1().ConfigMaps("bye").Patch(t.Context(), "f", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	must(t, err)
	eventually(t, 10*time.Second, func() string {
		if apierrors.IsNotFound(second(c.CoreV1().Namespaces().Get(t.Context(), "bye", metav1.GetOptions{}))) {
			return ""
		}
		return "the namespace is still there"
	})
	newNamespace(t, c, "bye")
	again, err := c.CoreV1().Namespaces().Get(t.Context(), "bye", metav1.GetOptions{})
	if err != nil || again.UID == first.UID {
		t.Errorf("the new namespace has the UID of the old one (%v)", err)
	}
	for name, seen := range map[string]watch.Interface{"config maps": mapsSeen, "widgets": widgetsSeen} {
		eventually(t, 5*time.Second, func() string {
			select {
			case e := <-seen.ResultChan():
				if e.Type == watch.Deleted {
					return ""
				}
			default:
			}
			return "the watch of " + name + " saw no deletion"
		})
	}
}

// TestInitialEventsEnd is case ST-5.
func TestInitialEventsEnd(t *testing.T) {
	s := serve(t)
	config := s.Config()
	c := clientFor(t, config)
	d, err := dynamic.NewForConfig(config)
	must(t, err)
	w := define(t, config, "st5.example.com")
	_, err = w.Namespace("default").Create(t.Context(), widget("st5.example.com", "w"), metav1.CreateOptions{})
	must(t, err)
	for i := range 3000 {
		_, err := c.CoreV1().Secrets("default").Create(t.Context(), &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i)}}, metav1.CreateOptions{})
		must(t, err)
	}
	last, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	must(t, err)
	for _, r := range []struct {
		schema.GroupVersionResource
		kind    string
		atLeast int
	}{
		{configMaps, "ConfigMap", 1},
		{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "Secret", 3000},
		{schema.GroupVersionResource{Version: "v1", Resource: "events"}, "Event", 0},
		{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod", 0},
		{schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, "Lease", 0},
		{schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "CustomResourceDefinition", 1},
		{schema.GroupVersionResource{Group: "st5.example.com", Version: "v1", Resource: "widgets"}, "Widget", 1},
	} {
		for _, version := range []string{"", "0", last.ResourceVersion} {
			for _, selector := range []string{"", "no=such"} {
				t.Run(r.Resource+" "+version+" "+selector, func(t *testing.T) {
					yes := true
					open, err := d.Resource(r.GroupVersionResource).Watch(t.Context(), metav1.ListOptions{
						SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
						AllowWatchBookmarks: true, ResourceVersion: version, LabelSelector: selector,
					})
					must(t, err)
					defer open.Stop()
					atLeast := r.atLeast
					if selector != "" {
						atLeast = 0
					}
					initialEvents(t, open, r.kind, atLeast, version)
				})
			}
		}
	}
	yes := true
	for _, match := range []metav1.ResourceVersionMatch{"", metav1.ResourceVersionMatchExact} {
		_, err := d.Resource(configMaps).Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: match, AllowWatchBookmarks: true})
		if !apierrors.IsInvalid(err) {
			t.Errorf("resourceVersionMatch %q: %v; want Invalid", match, err)
		}
	}
}

// initialEvents reads a watch up to the mark that ends the initial events.
func initialEvents(t *testing.T, w watch.Interface, kind string, atLeast int, version string) {
	t.Helper()
	count, newest := 0, 0
	if version != "" {
		newest, _ = strconv.Atoi(version)
	}
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatalf("the watch ended after %d events", count)
			}
			m, err := meta.Accessor(e.Object)
			must(t, err)
			at, err := strconv.Atoi(m.GetResourceVersion())
			must(t, err)
			if got := e.Object.GetObjectKind().GroupVersionKind().Kind; got != kind {
				t.Fatalf("%s of a %s; want %s", e.Type, got, kind)
			}
			switch {
			case e.Type == watch.Added:
				count++
				newest = max(newest, at)
			case e.Type == watch.Bookmark && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
				if at < newest {
					t.Errorf("the mark is at %d, behind %d", at, newest)
				}
				if count < atLeast {
					t.Errorf("%d initial events; want at least %d", count, atLeast)
				}
				return
			default:
				t.Fatalf("%s %s before the mark", e.Type, m.GetName())
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("no mark after %d events", count)
		}
	}
}
