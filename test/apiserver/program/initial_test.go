// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	crds "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

const (
	st5 = "st5.example.com"
	// many is how many Secrets there are.
	many = 3000
	// emptyLimit is within what time an empty set is to be answered, and syncLimit a cache to be in step.
	emptyLimit = busy * time.Second
	syncLimit  = 2 * time.Second // eventually stretches it
)

// initialKinds are the kinds watched with initial events, and how many objects each has at least; empty ones have none.
var initialKinds = []struct {
	schema.GroupVersionResource
	kind    string
	atLeast int
}{
	{configMaps, "ConfigMap", 1},
	{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "Secret", many},
	{schema.GroupVersionResource{Version: "v1", Resource: "events"}, "Event", 1},
	{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "Pod", 0},
	{schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, "Lease", 1},
	{schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "CustomResourceDefinition", 1},
	{schema.GroupVersionResource{Group: st5, Version: "v1", Resource: "widgets"}, "Widget", 1},
	{schema.GroupVersionResource{Group: st5, Version: "v2", Resource: "widgets"}, "Widget", 1},
}

// TestInitialEventsEnd is case ST-5.
func TestInitialEventsEnd(t *testing.T) {
	for _, mode := range []file.Mode{file.Durable, file.Relaxed, file.Memory} {
		t.Run(mode.String(), func(t *testing.T) {
			options := stored(t, mode)
			s := serve(t, options)
			last := populate(t, s.Config())
			t.Run("kinds", func(t *testing.T) { testInitialKinds(t, s.Config(), last) })
			t.Run("cache", func(t *testing.T) { testInformers(t, s.Config()) })
			t.Run("writes", func(t *testing.T) { testInitialDuringWrites(t, s.Config()) })
			t.Run("no bookmarks", func(t *testing.T) { testInitialWithoutBookmarks(t, s.Config()) })
			t.Run("match", func(t *testing.T) { testInitialMatch(t, s.Config()) })
			if mode == file.Memory {
				return
			}
			must(t, s.Stop())
			s = serve(t, options)
			t.Run("restarted", func(t *testing.T) { testInitialKinds(t, s.Config(), last) })
		})
	}
}

// populate makes the objects and returns the last version.
func populate(t *testing.T, config *rest.Config) string {
	t.Helper()
	quick := rest.CopyConfig(config)
	quick.ContentType = runtime.ContentTypeProtobuf
	c := clientFor(t, quick)
	w := define(t, config, st5, func(d *crds.CustomResourceDefinition) {
		second := d.Spec.Versions[0].DeepCopy()
		second.Name, second.Storage = "v2", false
		d.Spec.Versions = append(d.Spec.Versions, *second)
	})
	_, err := w.Namespace("default").Create(t.Context(), widget(st5, "w"), metav1.CreateOptions{})
	must(t, err)
	_, err = c.CoordinationV1().Leases("default").Create(t.Context(), &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = c.CoreV1().Events("default").Create(t.Context(), &core.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"},
		InvolvedObject: core.ObjectReference{Namespace: "default", Name: "x"}}, metav1.CreateOptions{})
	must(t, err)
	const writers = 8
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for j := range many / writers {
				s := &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d-%d", i, j)}}
				if _, err := c.CoreV1().Secrets("default").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	last, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	must(t, err)
	return last.ResourceVersion
}

// initially are the options of a watch that begins with initial events.
func initially(version, selector string) metav1.ListOptions {
	yes := true
	return metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks: true, ResourceVersion: version, LabelSelector: selector,
	}
}

func testInitialKinds(t *testing.T, config *rest.Config, last string) {
	d, err := dynamic.NewForConfig(config)
	must(t, err)
	for _, r := range initialKinds {
		for _, version := range []string{"", "0", last} {
			for _, selector := range []string{"", "no=such"} {
				t.Run(fmt.Sprintf("%s %s %q %q", r.Resource, r.Version, version, selector), func(t *testing.T) {
					begun := time.Now()
					w, err := d.Resource(r.GroupVersionResource).Watch(t.Context(), initially(version, selector))
					must(t, err)
					defer w.Stop()
					got, _ := initialEvents(t, w, r.GroupVersion().WithKind(r.kind), version)
					atLeast := r.atLeast
					if selector != "" {
						atLeast = 0
					}
					if empty := atLeast == 0; len(got) < atLeast || empty && len(got) > 0 {
						t.Errorf("%d initial events; want at least %d, none for an empty set", len(got), atLeast)
					} else if took := time.Since(begun); empty && took > emptyLimit {
						t.Errorf("an empty set took %v", took)
					}
				})
			}
		}
	}
}

// initialEvents reads a watch up to the mark that ends the initial events. It returns the versions of the objects, by
// name, and that of the mark.
func initialEvents(t *testing.T, w watch.Interface, kind schema.GroupVersionKind, version string) (map[string]int, int) {
	t.Helper()
	got := map[string]int{}
	newest := 0
	if version != "" {
		newest = number(t, version)
	}
	for {
		var e watch.Event
		select {
		case e = <-w.ResultChan(): // of no type once the watch has ended
		case <-time.After(busy * 5 * time.Second):
			t.Fatalf("no mark after %d events", len(got))
		}
		m, err := meta.Accessor(e.Object)
		if err != nil {
			t.Fatalf("%s %v after %d events", e.Type, e.Object, len(got))
		}
		at, name := number(t, m.GetResourceVersion()), m.GetNamespace()+"/"+m.GetName()
		if is := e.Object.GetObjectKind().GroupVersionKind(); is != kind {
			t.Fatalf("%s of a %v; want %v", e.Type, is, kind)
		}
		switch {
		case e.Type == watch.Added:
			if _, twice := got[name]; twice {
				t.Errorf("%s is among the initial events twice", name)
			}
			got[name], newest = at, max(newest, at)
		case e.Type == watch.Bookmark && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
			if at < newest {
				t.Errorf("the mark is at %d, behind %d", at, newest)
			}
			return got, at
		default:
			t.Fatalf("%s %s before the mark", e.Type, m.GetName())
		}
	}
}

func number(t *testing.T, version string) int {
	t.Helper()
	n, err := strconv.Atoi(version)
	must(t, err)
	return n
}

// complaints collects what clients were warned of.
type complaints struct {
	mu  sync.Mutex
	all []string
}

func (c *complaints) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, text)
}

func (c *complaints) HandleWarningHeader(_ int, _, text string) { c.add(text) }

// testInformers puts client-go's informers on top, which use this protocol by themselves.
func testInformers(t *testing.T, config *rest.Config) {
	var heard complaints
	config.WarningHandler = &heard
	d, err := dynamic.NewForConfig(config)
	must(t, err)
	for _, r := range initialKinds {
		t.Run(r.Resource+" "+r.Version, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			informer := dynamicinformer.NewFilteredDynamicInformer(d, r.GroupVersionResource, "", 0, cache.Indexers{}, nil).Informer()
			must(t, informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { heard.add(err.Error()) }))
			var ran sync.WaitGroup
			ran.Go(func() { informer.RunWithContext(ctx) })
			eventually(t, syncLimit, func() string {
				if informer.HasSynced() && len(informer.GetStore().ListKeys()) >= r.atLeast {
					return ""
				}
				return fmt.Sprintf("%d objects of at least %d", len(informer.GetStore().ListKeys()), r.atLeast)
			})
			cancel()
			ran.Wait()
		})
	}
	if len(heard.all) > 0 {
		t.Errorf("the informers were warned: %q", heard.all)
	}
}

// written is one write of testInitialDuringWrites.
type written struct {
	name string
	at   int
}

// testInitialDuringWrites opens watches while objects are made and changed, and holds each against the list of writes.
func testInitialDuringWrites(t *testing.T, config *rest.Config) {
	const watches = 6
	d, err := dynamic.NewForConfig(config)
	must(t, err)
	for _, r := range initialKinds {
		if r.Resource != "configmaps" && r.Resource != "widgets" {
			continue
		}
		t.Run(r.Resource+" "+r.Version, func(t *testing.T) {
			kind := r.GroupVersion().WithKind(r.kind)
			api := d.Resource(r.GroupVersionResource).Namespace("default")
			opened := make(chan struct{})
			begun, ended, log := keepWriting(t, api, kind, opened)
			stop := sync.OnceFunc(func() { close(opened); <-ended })
			defer stop() // whatever fails below
			<-begun
			var checks []func()
			for i := range watches {
				w, err := api.Watch(t.Context(), initially([]string{"", "0"}[i%2], ""))
				must(t, err)
				defer w.Stop()
				initial, mark := initialEvents(t, w, kind, "")
				checks = append(checks, func() { checkLive(t, w, *log, initial, mark) })
			}
			stop()
			for _, check := range checks {
				check()
			}
		})
	}
}

// keepWriting makes and changes objects until some time after enough is closed. It closes begun when there are some,
// and ended when the list of writes is complete.
func keepWriting(t *testing.T, api dynamic.ResourceInterface, kind schema.GroupVersionKind, enough <-chan struct{}) (begun, ended chan struct{}, log *[]written) {
	const objects, after = 20, 10
	begun, ended, log = make(chan struct{}), make(chan struct{}), &[]written{}
	write := func(i int) bool {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		o.SetName(fmt.Sprintf("live-%s-%d", kind.Version, i%objects))
		o.SetAnnotations(map[string]string{stepKey: fmt.Sprint(i)})
		o, err := api.Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test"})
		if err != nil {
			t.Error(err)
			return false
		}
		at, _ := strconv.Atoi(o.GetResourceVersion()) // the server's own, and compared below
		*log = append(*log, written{"default/" + o.GetName(), at})
		return true
	}
	go func() {
		defer close(ended)
		start := sync.OnceFunc(func() { close(begun) })
		defer start()
		for i, last := 0, -1; last < 0 || i < last; i++ {
			if !write(i) {
				return
			}
			if i == objects/2 {
				start()
			}
			select {
			case <-enough:
				if last < 0 {
					last = i + after
				}
			default:
			}
		}
	}()
	return begun, ended, log
}

// checkLive holds the initial events, as of the mark, and all live ones against the list of writes.
func checkLive(t *testing.T, w watch.Interface, log []written, initial map[string]int, mark int) {
	t.Helper()
	want := map[string]int{}
	var live, got []written
	prefix := log[0].name[:len(log[0].name)-1] // it is numbered 0; the same kind's other version may have others
	for _, l := range log {
		if l.at <= mark {
			want[l.name] = l.at
		} else {
			live = append(live, l)
		}
	}
	for name, at := range initial {
		if strings.HasPrefix(name, prefix) && want[name] != at {
			t.Errorf("at %d %s was there at version %d; want %d", mark, name, at, want[name])
		}
	}
	for name := range want {
		if initial[name] == 0 {
			t.Errorf("at %d %s was not among the initial events", mark, name)
		}
	}
	if len(live) == 0 {
		t.Error("nothing was written after the mark: the test is void")
	}
	for range live {
		m, err := meta.Accessor(next(t, w).Object)
		must(t, err)
		got = append(got, written{m.GetNamespace() + "/" + m.GetName(), number(t, m.GetResourceVersion())})
	}
	if !slices.Equal(got, live) {
		t.Errorf("after %d came %v; want %v", mark, got, live)
	}
}

// testInitialWithoutBookmarks expects the initial events and then the live ones, with no mark between them.
func testInitialWithoutBookmarks(t *testing.T, config *rest.Config) {
	c := clientFor(t, config).CoreV1().ConfigMaps("default")
	list, err := c.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	o := initially("", "")
	o.AllowWatchBookmarks = false
	w, err := c.Watch(t.Context(), o)
	must(t, err)
	defer w.Stop()
	_, err = c.Create(t.Context(), configMap("unmarked"), metav1.CreateOptions{})
	must(t, err)
	for i := range len(list.Items) + 1 {
		select {
		case e := <-w.ResultChan():
			m, err := meta.Accessor(e.Object)
			if err != nil || e.Type != watch.Added || (m.GetName() == "unmarked") != (i == len(list.Items)) {
				t.Fatalf("event %d of %d is %s %v", i, len(list.Items)+1, e.Type, e.Object)
			}
		case <-time.After(busy * 5 * time.Second):
			t.Fatalf("%d events came of %d", i, len(list.Items)+1)
		}
	}
}

// testInitialMatch expects refusals of what the protocol does not allow.
func testInitialMatch(t *testing.T, config *rest.Config) {
	c := clientFor(t, config).CoreV1().ConfigMaps("default")
	for _, match := range []metav1.ResourceVersionMatch{"", metav1.ResourceVersionMatchExact} {
		o := initially("", "")
		o.ResourceVersionMatch = match
		_, err := c.Watch(t.Context(), o)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "resourceVersionMatch") {
			t.Errorf("resourceVersionMatch %q: %v; want Invalid, naming the field", match, err)
		}
	}
}
