// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/test/apiserver/server"
	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// stepKey is an annotation that says which step wrote an object: content that every form of watch shows.
const stepKey = "step"

// opener opens a watch in the namespace default.
type opener func(context.Context, metav1.ListOptions) (watch.Interface, error)

// openers returns the ways to watch a resource, by the form in which objects come. Typed is one of the three only.
func openers(t *testing.T, config *rest.Config, r schema.GroupVersionResource, typed opener) map[string]opener {
	t.Helper()
	d, err := dynamic.NewForConfig(config)
	must(t, err)
	md, err := metadata.NewForConfig(config)
	must(t, err)
	return map[string]opener{"typed": typed, "unstructured": d.Resource(r).Namespace("default").Watch, "metadata": md.Resource(r).Namespace("default").Watch}
}

// told is an event as text: its type, the version's name or else the version, the step the content is of, and a label.
func told(t *testing.T, e watch.Event, names map[string]string) string {
	t.Helper()
	m, err := meta.Accessor(e.Object)
	if err != nil {
		t.Fatalf("%s %v", e.Type, e.Object)
	}
	at := m.GetResourceVersion()
	if name := names[at]; name != "" {
		at = name
	}
	return fmt.Sprintf("%s %s: %s%s", e.Type, at, m.GetAnnotations()[stepKey], m.GetLabels()["app"])
}

// next returns a watch's next event that is no bookmark. Marks that end initial events must have been read before.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				t.Fatal("the watch ended")
			}
			if e.Type != watch.Bookmark {
				return e
			}
			if m, err := meta.Accessor(e.Object); err != nil || m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "" {
				t.Fatalf("a mark, among live events: %v", e.Object)
			}
		case <-time.After(busy * 5 * time.Second):
			t.Fatal("no event came")
		}
	}
}

// selected is a selector and what a watch with it is to tell, from the beginning and from the second step.
type selected struct {
	name    string
	options metav1.ListOptions
	want    []string
	resumed []string
}

// checkWatches runs change while every form of watch is open with every selector, opens them again at the version that
// change returns, and compares what they tell. Versions go by the names that change gives them.
func checkWatches(t *testing.T, forms map[string]opener, from string, table []selected, change func(names map[string]string) (again string)) {
	t.Helper()
	type opened struct {
		name string
		watch.Interface
		want []string
	}
	var open []opened
	begin := func(when, version string, want func(selected) []string) {
		for form, watchOf := range forms {
			for _, s := range table {
				o := s.options
				o.ResourceVersion = version
				w, err := watchOf(t.Context(), o)
				must(t, err)
				open = append(open, opened{s.name + " " + form + " " + when, w, want(s)})
			}
		}
	}
	names := map[string]string{}
	begin("live", from, func(s selected) []string { return s.want })
	begin("resumed", change(names), func(s selected) []string { return s.resumed })
	for _, w := range open {
		var got []string
		for range w.want {
			got = append(got, told(t, next(t, w), names))
		}
		if !slices.Equal(got, w.want) {
			t.Errorf("%s: %q; want %q", w.name, got, w.want)
		}
		w.Stop()
	}
}

// TestObjectLeavesAWatchsSelector is case ST-2.
func TestObjectLeavesAWatchsSelector(t *testing.T) {
	for _, mode := range []file.Mode{file.Durable, file.Memory} {
		s := serve(t, stored(t, mode))
		t.Run(mode.String()+" label", func(t *testing.T) { testLabelGoes(t, s.Config()) })
		t.Run(mode.String()+" node", func(t *testing.T) { testPodIsBound(t, s.Config()) })
	}
}

// stored makes a server keep its data in this way, in a folder of the test's.
func stored(t *testing.T, mode file.Mode) func(*server.Options) {
	dir := ""
	if mode != file.Memory {
		dir = t.TempDir()
	}
	return func(o *server.Options) { o.Storage, o.DataDir = mode, dir }
}

func testLabelGoes(t *testing.T, config *rest.Config) {
	maps := clientFor(t, config).CoreV1().ConfigMaps("default")
	list, err := maps.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	full := []string{"ADDED r1: 1x", "MODIFIED r2: 2x", "MODIFIED r3: 3", "MODIFIED r4: 4", "MODIFIED r5: 5x", "DELETED r6: 5x"}
	// An object that leaves is told with the last content that matched, at the version at which it left.
	matching := []string{"ADDED r1: 1x", "MODIFIED r2: 2x", "DELETED r3: 2x", "ADDED r5: 5x", "DELETED r6: 5x"}
	table := []selected{
		{"label", metav1.ListOptions{LabelSelector: "app=x"}, matching, matching[2:]},
		{"all", metav1.ListOptions{}, full, full[2:]},
		{"name", metav1.ListOptions{FieldSelector: "metadata.name=c"}, full, full[2:]},
	}
	checkWatches(t, openers(t, config, configMaps, maps.Watch), list.ResourceVersion, table, func(names map[string]string) string {
		labelled := map[string]string{"app": "x"}
		m, r2 := configMap("c"), ""
		for i, labels := range []map[string]string{labelled, labelled, nil, nil, labelled} {
			step := fmt.Sprint(i + 1)
			m.Labels, m.Annotations, m.Data["k"] = labels, map[string]string{stepKey: step}, step
			var err error
			if i == 0 {
				m, err = maps.Create(t.Context(), m, metav1.CreateOptions{})
			} else {
				m, err = maps.Update(t.Context(), m, metav1.UpdateOptions{})
			}
			must(t, err)
			names[m.ResourceVersion] = "r" + step
			if i == 1 {
				r2 = m.ResourceVersion
			}
		}
		must(t, maps.Delete(t.Context(), "c", metav1.DeleteOptions{}))
		nameRest(t, maps.Watch, m.ResourceVersion, names, "r6")
		return r2
	})
}

// nameRest names the versions of the events after a version. A deletion's version is told by watches alone: one says
// it, and all others must agree.
func nameRest(t *testing.T, watchOf opener, after string, names map[string]string, rest ...string) {
	t.Helper()
	w, err := watchOf(t.Context(), metav1.ListOptions{ResourceVersion: after})
	must(t, err)
	defer w.Stop()
	for _, name := range rest {
		m, err := meta.Accessor(next(t, w).Object)
		must(t, err)
		if known := names[m.GetResourceVersion()]; known != "" {
			t.Fatalf("version %s is that of %s and of %s", m.GetResourceVersion(), known, name)
		}
		names[m.GetResourceVersion()] = name
	}
}

func testPodIsBound(t *testing.T, config *rest.Config) {
	c := clientFor(t, config)
	all := c.CoreV1().Pods("default")
	eventually(t, 5*time.Second, func() string { // pods are refused before that
		return text(second(c.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})))
	})
	list, err := all.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	// Kubernetes marks a pod as going before it removes it, even without a grace period.
	full := []string{"ADDED r1: 1", "MODIFIED r2: 2", "MODIFIED r3: 2", "DELETED r4: 2"}
	bound := []string{"ADDED r2: 2", "MODIFIED r3: 2", "DELETED r4: 2"}
	unbound := []string{"ADDED r1: 1", "DELETED r2: 1"}
	table := []selected{
		{"on n1", metav1.ListOptions{FieldSelector: "spec.nodeName=n1"}, bound, bound},
		{"on no node", metav1.ListOptions{FieldSelector: "spec.nodeName="}, unbound, unbound[1:]},
		{"all", metav1.ListOptions{}, full, full[1:]},
	}
	checkWatches(t, openers(t, config, pods, all.Watch), list.ResourceVersion, table, func(names map[string]string) string {
		p, err := all.Create(t.Context(), pod("p"), metav1.CreateOptions{})
		must(t, err)
		names[p.ResourceVersion] = "r1"
		must(t, bind(t, c, "p", "n1"))
		grace := int64(0)
		must(t, all.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &grace}))
		nameRest(t, all.Watch, p.ResourceVersion, names, "r2", "r3", "r4")
		return p.ResourceVersion
	})
}

func pod(name string) *core.Pod {
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{stepKey: "1"}},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}},
	}
}

func bind(t *testing.T, c kubernetes.Interface, pod, node string) error {
	return c.CoreV1().Pods("default").Bind(t.Context(), &core.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Annotations: map[string]string{stepKey: "2"}},
		Target:     core.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}
