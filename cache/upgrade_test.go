// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client"
)

// formed is a handler that was added in one form. It notes whatever it should not have been told and keeps what it
// was told, by key.
type formed struct {
	name      string
	runInline bool
	metadata  bool
	reg       toolscache.ResourceEventHandlerRegistration

	mu      sync.Mutex
	known   map[string]string // key → resourceVersion
	wrong   []string
	resyncs int
	unseen  int
}

func (f *formed) Inline() bool { return f.runInline }

func (f *formed) fail(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

// check returns the key and version of an object, whose form and content must be those that were asked for.
func (f *formed) check(where string, obj any) (string, string) {
	o, ok := obj.(client.Object)
	if !ok {
		f.fail("%s got a %T", where, obj)
		return "", ""
	}
	key := keyIn(o.GetNamespace(), o.GetName())
	switch o := obj.(type) {
	case *metav1.PartialObjectMetadata:
		if !f.metadata || o.Kind != "ConfigMap" {
			f.fail("%s of %s got metadata of kind %q", where, key, o.Kind)
		}
	case *corev1.ConfigMap:
		if f.metadata || o.Data["k"] != "v" {
			f.fail("%s of %s got a whole object with %v", where, key, o.Data)
		}
	default:
		f.fail("%s of %s got a %T", where, key, obj)
	}
	return key, o.GetResourceVersion()
}

func (f *formed) OnAdd(obj any, _ bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, version := f.check("add", obj)
	if was, ok := f.known[key]; ok {
		f.fail("%s was added at %s although known at %s", key, version, was)
	}
	f.known[key] = version
}

func (f *formed) OnUpdate(old, obj any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, before := f.check("update from", old)
	_, version := f.check("update to", obj)
	if f.known[key] != before {
		f.fail("%s changed from %s although known at %q", key, before, f.known[key])
	}
	if before == version {
		f.resyncs++
		if old != obj {
			f.fail("%s changed without a change", key)
		}
	}
	f.known[key] = version
}

func (f *formed) OnDelete(obj any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
		f.unseen++
	}
	key, _ := f.check("delete", obj)
	delete(f.known, key)
}

// bothForms drives a cache of one kind in both forms, step by step.
type bothForms struct {
	*rig
	rigged   *testing.T
	mu       sync.Mutex
	informed map[bool]Informer // by "metadata?"
	handlers []*formed
	refused  string // the form that list and watch are refused in
	puts     int
	started  bool
	ending   bool
}

func newBothForms(t *testing.T, opts Options) *bothForms {
	s := newServer()
	b := &bothForms{rigged: t, informed: map[bool]Informer{}}
	s.answers = func(req *http.Request) *http.Response {
		form := "typed"
		if strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata") {
			form = "metadata"
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if form == b.refused {
			return reply(403, failure(403, metav1.StatusReasonForbidden, "no rights"))
		}
		return nil
	}
	period := time.Hour
	opts.SyncPeriod = &period
	b.rig = newStoppedRig(t, opts, s)
	for _, name := range []string{"keep", "goes", "returns"} {
		b.put(name)
	}
	return b
}

func (b *bothForms) put(name string) {
	b.puts++
	b.server.put(b.rigged, object("configmaps", "a", name,
		with(labelled("n", fmt.Sprint(b.puts)), map[string]any{"data": map[string]any{"k": "v"}})))
}

func (b *bothForms) object(metadata bool) client.Object {
	if metadata {
		return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
	}
	return &corev1.ConfigMap{}
}

// watch gets the informer of a form and adds two handlers, of which one is inline, and every other pair has a
// resync of its own. It may be called at once from several goroutines.
func (b *bothForms) watch(metadata bool) {
	inf, err := b.cache.GetInformer(b.rigged.Context(), b.object(metadata), BlockUntilSynced(false))
	if err != nil {
		b.rigged.Error(err)
		return
	}
	for _, runInline := range []bool{false, true} {
		f := &formed{runInline: runInline, metadata: metadata, known: map[string]string{}}
		b.mu.Lock()
		n := len(b.handlers)
		f.name = fmt.Sprintf("handler %d, metadata %t, inline %t", n, metadata, runInline)
		b.informed[metadata], b.handlers = inf, append(b.handlers, f)
		b.mu.Unlock()
		if n%4 < 2 {
			f.reg, err = inf.AddEventHandler(f)
		} else {
			f.reg, err = inf.AddEventHandlerWithResyncPeriod(f, 20*time.Minute)
		}
		if err != nil {
			b.rigged.Error(err)
		}
	}
}

// atOnce does steps at once and waits for all.
func (b *bothForms) atOnce(steps ...string) {
	var work sync.WaitGroup
	for _, step := range steps {
		work.Go(func() { b.step(step) })
	}
	work.Wait()
}

// read reads in a form. It may fail because the form is, or was just now, refused, but not at the end.
func (b *bothForms) read(metadata bool) {
	obj := b.object(metadata)
	if err := b.cache.Get(ctx10(b.rigged), key("a", "keep"), obj); err != nil {
		if b.ending || !apierrors.IsForbidden(err) {
			b.rigged.Errorf("read, metadata %t: %v", metadata, err)
		}
		return
	}
	if m, ok := obj.(*corev1.ConfigMap); ok {
		want(b.rigged, m.Data["k"], "v")
	}
	want(b.rigged, obj.GetObjectKind().GroupVersionKind(), configMapKind)
}

func (b *bothForms) step(name string) {
	switch name {
	case "typed", "metadata":
		b.watch(name == "metadata")
	case "both":
		b.atOnce("typed", "metadata")
	case "read both":
		b.atOnce("read metadata", "metadata", "read typed", "typed")
	case "read typed", "read metadata":
		if b.started {
			b.read(name == "read metadata")
		}
	case "start":
		if !b.started {
			b.started = true
			b.start()
		}
	case "events":
		b.put("keep")
		b.put(fmt.Sprint("new", b.puts))
		b.server.remove("configmaps", "a", "goes")
		b.server.remove("configmaps", "a", "returns")
		b.put("returns")
		b.put("goes")
	case "relist": // what happens meanwhile is not seen
		b.server.hold("configmaps")
		b.put("keep")
		b.server.remove("configmaps", "a", "goes")
		b.server.cut("configmaps", true)
		b.server.release("configmaps")
	case "forbid typed", "forbid metadata", "allow":
		_, form, _ := strings.Cut(name, " ")
		b.server.set(func() { b.refused = form })
	case "wait":
		synctest.Wait()
	case "resync":
		time.Sleep(90 * time.Minute)
	default:
		b.rigged.Fatalf("no step %q", name)
	}
}

// finish starts what is not started, lets everything settle and compares what each handler knows with the server.
func (b *bothForms) finish() {
	b.step("start")
	b.step("allow")
	for _, metadata := range []bool{true, false} {
		if b.informed[metadata] == nil {
			b.watch(metadata)
		}
	}
	time.Sleep(time.Minute)
	b.ending = true
	want(b.rigged, b.cache.WaitForCacheSync(ctx10(b.rigged)), true)
	synctest.Wait()
	b.step("events")
	synctest.Wait()
	for _, f := range b.handlers {
		f.mu.Lock()
		f.resyncs = 0
		f.mu.Unlock()
	}
	b.step("resync")
	synctest.Wait()
	truth := map[string]string{}
	var list corev1.ConfigMapList
	if err := b.live.List(ctx10(b.rigged), &list); err != nil {
		b.rigged.Fatal(err)
	}
	for _, m := range list.Items {
		truth[keyIn(m.Namespace, m.Name)] = m.ResourceVersion
	}
	for _, f := range b.handlers {
		f.mu.Lock()
		if len(f.wrong) > 0 {
			b.rigged.Errorf("%s: %d wrong, first: %s", f.name, len(f.wrong), strings.Join(f.wrong[:min(3, len(f.wrong))], "; "))
		}
		if !maps.Equal(f.known, truth) {
			b.rigged.Errorf("%s knows %v, the server has %v", f.name, f.known, truth)
		}
		if f.resyncs < len(truth) {
			b.rigged.Errorf("%s was resynced %d times", f.name, f.resyncs)
		}
		f.mu.Unlock()
		want(b.rigged, f.reg.HasSynced(), true)
	}
	for metadata, inf := range b.informed {
		want(b.rigged, inf.HasSynced(), true)
		b.read(metadata)
	}
}

// Each handler is told of objects in the form it was added in, in whatever order the forms of a kind are asked for.
func TestEachHandlerGetsItsForm(t *testing.T) {
	run := func(t *testing.T, steps []string, opts Options) {
		within(t, func(t *testing.T) {
			b := newBothForms(t, opts)
			for _, step := range steps {
				b.step(step)
			}
			b.finish()
			if t.Failed() {
				t.Log(steps)
			}
		})
	}
	namespaces := Options{DefaultNamespaces: map[string]Config{"a": {}, "b": {}}}
	own := Options{NewInformer: toolscache.NewSharedIndexInformer}
	for _, c := range []string{
		"typed,metadata,start", "metadata,typed,start", "start,typed,metadata", "start,metadata,typed",
		"metadata,start,typed", "typed,start,metadata", "metadata,start,wait,typed", "typed,start,wait,metadata",
		"metadata,start,events,typed,events,metadata,events,typed", "metadata,start,wait,events,wait,read typed,typed,metadata",
		"start,read metadata,metadata,read typed,typed,events,read metadata,read typed",
		"start,read metadata,read typed,typed,metadata", "start,metadata,wait,resync,typed,resync,metadata,wait,resync",
		"metadata,start,wait,relist,typed,relist,wait,metadata,typed", "metadata,start,wait,typed,relist,events,wait,relist",
		"start,forbid typed,metadata,wait,typed,events,wait,metadata,relist,resync,events,allow,events",
		"start,forbid metadata,metadata,wait,typed,events,wait,metadata,relist,resync,events,allow,events",
		"forbid typed,metadata,typed,start,events,wait,resync,events,allow",
		"start,forbid typed,metadata,metadata,typed,typed,wait,resync,allow",
		"both,start", "start,both", "start,metadata,both,events,both", "start,read both,events,read both",
	} {
		steps := strings.Split(c, ",")
		t.Run(c, func(t *testing.T) { run(t, steps, Options{}) })
		t.Run(c+" in two namespaces", func(t *testing.T) { run(t, steps, namespaces) })
	}
	t.Run("the program's own informers", func(t *testing.T) {
		run(t, []string{"metadata", "start", "wait", "events", "typed", "events", "wait", "metadata"}, own)
	})
	all := []string{"typed", "metadata", "both", "read both", "start", "events", "relist", "wait", "read typed", "read metadata",
		"forbid typed", "forbid metadata", "allow", "allow", "resync"}
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			var steps []string
			for range 12 {
				steps = append(steps, all[rnd.IntN(len(all))])
			}
			run(t, steps, []Options{{}, namespaces}[seed%2])
		})
	}
}

// While the server refuses whole objects, handlers of whole objects hear of nothing and are not synced; those of
// metadata are. Then deletions nobody saw come as such, in both forms.
func TestTypedHandlerIsNotSyncedByMetadata(t *testing.T) {
	within(t, func(t *testing.T) {
		b := newBothForms(t, Options{})
		for _, step := range []string{"forbid typed", "start", "metadata", "wait", "typed", "wait"} {
			b.step(step)
		}
		for _, f := range b.handlers {
			want(t, fmt.Sprint(f.name, f.reg.HasSynced(), len(f.known)), fmt.Sprint(f.name, f.metadata, map[bool]int{true: 3}[f.metadata]))
		}
		want(t, b.informed[true].HasSynced(), true)
		want(t, b.informed[false].HasSynced(), false)
		ctx := ctx10(t)
		want(t, b.cache.WaitForCacheSync(ctx), false)
		b.step("allow")
		want(t, b.cache.WaitForCacheSync(t.Context()), true)
		synctest.Wait()
		want(t, b.informed[false].HasSynced(), true)
		b.step("relist")
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, f := range b.handlers {
			want(t, fmt.Sprint(f.name, f.unseen, f.wrong), fmt.Sprint(f.name, 1, []string{}))
			want(t, slices.Sorted(maps.Keys(f.known)), "[a/keep a/returns]")
		}
	})
}

// Both forms asked for before the start cost one list and one watch.
func TestBothFormsBeforeTheStart(t *testing.T) {
	within(t, func(t *testing.T) {
		b := newBothForms(t, Options{})
		for _, step := range []string{"metadata", "typed", "metadata"} {
			b.step(step)
		}
		e := onlyPart(t, b.rig, "ConfigMap").set.entry
		want(t, e.next == nil, true)
		b.step("start")
		synctest.Wait()
		want(t, b.server.count("WATCH configmaps"), 1)
		want(t, b.server.count("LIST configmaps"), 0)
		want(t, len(b.handlers[0].known), 3)
	})
}

// What the replaced store still gets after the upgrade, because its watch was at an event, is told to nobody, and
// a store that lags behind the one it replaces takes over with its next event or bookmark.
func TestReplacedStoreIsSilent(t *testing.T) {
	for _, next := range []string{"event", "bookmark", "another's deletion"} {
		t.Run(next, func(t *testing.T) {
			within(t, func(t *testing.T) {
				b := newBothForms(t, Options{})
				for _, step := range []string{"start", "metadata", "wait"} {
					b.step(step)
				}
				former := onlyPart(t, b.rig, "ConfigMap")
				e := former.set.entry
				e.deliverMu.Lock()
				former.lastRV = "20" // as if it had been listed later, after writes of other kinds
				e.deliverMu.Unlock()
				b.step("read typed")
				b.step("typed")
				synctest.Wait()
				want(t, onlyPart(t, b.rig, "ConfigMap") == former, true)
				want(t, len(b.handlers[2].known), 3)
				b.server.set(func() { b.server.version = 30 })
				switch next {
				case "event":
					b.put("keep")
				case "bookmark":
					b.server.bookmark("configmaps")
				default:
					b.server.remove("configmaps", "a", "goes")
				}
				synctest.Wait()
				want(t, onlyPart(t, b.rig, "ConfigMap") == former, false)
				late := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
					Namespace: "a", Name: "late", UID: "late", ResourceVersion: "40"}}
				if err := former.Add(late); err != nil {
					t.Fatal(err)
				}
				b.finish()
			})
		})
	}
}
