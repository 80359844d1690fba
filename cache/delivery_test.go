// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/client"
)

func (r *rig) informer(t *testing.T, obj client.Object, opts ...InformerGetOption) Informer {
	t.Helper()
	inf, err := r.cache.GetInformer(t.Context(), obj, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return inf
}

func handle(t *testing.T, inf Informer, h toolscache.ResourceEventHandler) toolscache.ResourceEventHandlerRegistration {
	t.Helper()
	reg, err := inf.AddEventHandler(h)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

// inline is a handler that never blocks.
type inline struct {
	toolscache.ResourceEventHandlerFuncs
}

func (inline) Inline() bool { return true }

func TestChangesThatWaitAreJoined(t *testing.T) {
	obj := func(name string, uid string, n int, owner string) *corev1.ConfigMap {
		m := configMap("a", name)
		m.UID, m.ResourceVersion = typesUID(uid), fmt.Sprint(n)
		if owner != "" {
			m.OwnerReferences = []metav1.OwnerReference{{UID: typesUID(owner), Name: owner}}
		}
		return m
	}
	v := func(n int) *corev1.ConfigMap { return obj("m", "u", n, "") }
	owned := func(n int, owner string) *corev1.ConfigMap { return obj("m", "u", n, owner) }
	next := func(n int) *corev1.ConfigMap { return obj("m", "u2", n, "") }
	show := func(changes []change) (out []string) {
		for _, c := range changes {
			s := ""
			if c.old != nil {
				s += c.old.(*corev1.ConfigMap).ResourceVersion
			}
			s += ">"
			if c.new != nil {
				s += c.new.(*corev1.ConfigMap).ResourceVersion
			}
			out = append(out, s)
		}
		return out
	}
	for name, c := range map[string]struct {
		in   []change
		want string
	}{
		"updates":               {[]change{{old: v(1), new: v(2)}, {old: v(2), new: v(3)}, {old: v(3), new: v(4)}}, "[1>4]"},
		"add then update":       {[]change{{new: v(1)}, {old: v(1), new: v(2)}}, "[>2]"},
		"add then delete":       {[]change{{new: v(1)}, {old: v(2)}}, "[2>]"},
		"update then delete":    {[]change{{old: v(1), new: v(2)}, {old: v(3)}}, "[3>]"},
		"recreated":             {[]change{{old: v(1), new: v(2)}, {old: v(3)}, {new: next(4)}, {old: next(4), new: next(5)}}, "[3> >5]"},
		"left its owner, gone":  {[]change{{old: owned(1, "o"), new: v(2)}, {old: v(3)}}, "[1>2 3>]"},
		"recreated, gone again": {[]change{{old: v(1)}, {new: next(2)}, {old: next(3)}}, "[1> 3>]"},
		"over and over": {[]change{{old: owned(1, "o"), new: v(2)}, {old: v(3)}, {new: next(4)}, {old: next(5)},
			{new: next(6)}, {old: next(7)}, {new: next(8)}}, "[1>2 3> >8]"},
	} {
		var waiting []change
		for _, x := range c.in {
			waiting = join(waiting, x)
			if len(waiting) > maxPerKey {
				t.Fatalf("%s: %d changes wait for one key", name, len(waiting))
			}
		}
		if got := fmt.Sprint(show(waiting)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestHandoffModel drives a hand-off with random changes and a slow handler, and compares what the handler
// knows in the end with the truth.
func TestHandoffModel(t *testing.T) {
	within(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(7, 7))
		seen := map[string]any{}
		h := newHandoff(func(key string, c change) {
			time.Sleep(time.Duration(rnd.IntN(3)) * time.Millisecond)
			if c.new == nil {
				delete(seen, key)
			} else {
				seen[key] = c.new
			}
		})
		truth := map[string]any{}
		var mu sync.Mutex
		for n := range 20_000 {
			key := fmt.Sprintf("k%d", n%17*n%13)
			m := configMap("a", key)
			m.ResourceVersion = fmt.Sprint(n)
			mu.Lock()
			old := truth[key]
			var c change
			if old != nil && n%5 == 0 {
				c = change{old: old}
				delete(truth, key)
			} else {
				c = change{old: old, new: m}
				truth[key] = m
			}
			mu.Unlock()
			h.put(key, c)
			if n == 1000 {
				h.filled()
			}
			if h.len() > 13*17 {
				t.Fatalf("%d keys wait", h.len())
			}
			if n%100 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		<-h.synced
		synctest.Wait()
		h.wait()
		for key, obj := range truth {
			if seen[key] != obj {
				t.Fatalf("%s: the handler does not know the last state", key)
			}
		}
		want(t, len(seen), len(truth))
		h.close()
		h.put("late", change{new: configMap("a", "late")})
		want(t, h.len(), 0)
	})
}

// A handler that never returns delays no read and no other handler.
func TestHandlerThatNeverReturns(t *testing.T) {
	within(t, func(t *testing.T) {
		r := newRig(t, Options{}, nil)
		inf := r.informer(t, &corev1.ConfigMap{})
		free := make(chan struct{})
		defer close(free)
		stuck := handle(t, inf, toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-free }})
		var others, inlined atomic.Int32
		handle(t, inf, toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { others.Add(1) }})
		handle(t, inf, inline{toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { inlined.Add(1) }}})
		for i := range 100 {
			r.server.put(t, object("configmaps", "a", fmt.Sprintf("m%02d", i), nil))
		}
		synctest.Wait()
		want(t, len(mustList(t, r.client)), 100)
		want(t, others.Load(), 100)
		want(t, inlined.Load(), 100)
		want(t, stuck.HasSynced(), true) // nothing was there when it came
		late := handle(t, inf, toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-free }})
		synctest.Wait()
		want(t, late.HasSynced(), false)
		want(t, inf.HasSynced(), true)
		// Removal does not wait for it either.
		if err := inf.RemoveEventHandler(stuck); err != nil {
			t.Fatal(err)
		}
	})
}

// Two functions of users that read each other's kind, and one that lists its own, inside their handlers.
func TestHandlersThatReadTheCache(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		for i := range 30 {
			s.put(t, object("configmaps", "a", fmt.Sprint("m", i), nil))
			s.put(t, object("pods", "a", fmt.Sprint("p", i), nil))
		}
		r := newRig(t, Options{}, s)
		var maps, pods, own atomic.Int32
		count := func(n *atomic.Int32, list client.ObjectList) toolscache.ResourceEventHandler {
			return toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				if err := r.client.List(context.Background(), list.DeepCopyObject().(client.ObjectList)); err != nil {
					t.Error(err)
				}
				n.Add(1)
			}}
		}
		// Neither kind is cached yet: each handler's first read makes the other's.
		mapInf := r.informer(t, &corev1.ConfigMap{}, BlockUntilSynced(false))
		podInf := r.informer(t, &corev1.Pod{}, BlockUntilSynced(false))
		regs := []toolscache.ResourceEventHandlerRegistration{
			handle(t, mapInf, count(&maps, &corev1.PodList{})),
			handle(t, podInf, count(&pods, &corev1.ConfigMapList{})),
			handle(t, podInf, count(&own, &corev1.PodList{})),
		}
		for _, reg := range regs {
			<-reg.HasSyncedChecker().Done()
		}
		want(t, fmt.Sprint(maps.Load(), pods.Load(), own.Load()), "30 30 30")
	})
}

func TestRelistTellsTheDifference(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		for _, name := range []string{"same", "changes", "goes", "returns"} {
			s.put(t, object("configmaps", "a", name, nil))
		}
		r := newRig(t, Options{}, s)
		inf := r.informer(t, &corev1.ConfigMap{})
		var heard []string
		handle(t, inf, toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(o any, initial bool) {
				heard = append(heard, fmt.Sprint("add ", o.(*corev1.ConfigMap).Name, " ", initial))
			},
			UpdateFunc: func(_, o any) { heard = append(heard, "update "+o.(*corev1.ConfigMap).Name) },
			DeleteFunc: func(o any) {
				last, ok := o.(toolscache.DeletedFinalStateUnknown)
				heard = append(heard, fmt.Sprint("delete ", last.Key, " ", ok))
			},
		})
		synctest.Wait()
		heard = nil
		s.hold("configmaps")
		s.put(t, object("configmaps", "a", "changes", labelled("x", "1")))
		s.remove("configmaps", "a", "goes")
		s.remove("configmaps", "a", "returns")
		s.put(t, object("configmaps", "a", "returns", nil))
		s.put(t, object("configmaps", "a", "new", nil))
		s.cut("configmaps", true)
		s.release("configmaps")
		time.Sleep(time.Minute)
		synctest.Wait()
		slices.Sort(heard)
		want(t, heard, "[add new false add returns false delete a/goes true delete a/returns true update changes]")
	})
}

func TestResync(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("configmaps", "a", "m", nil))
		period := time.Hour
		r := newRig(t, Options{SyncPeriod: &period}, s)
		inf := r.informer(t, &corev1.ConfigMap{})
		var usual, own, never atomic.Int32
		count := func(n *atomic.Int32) toolscache.ResourceEventHandler {
			return toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(old, obj any) {
				if old != obj {
					t.Error("a resync is an update without a change")
				}
				n.Add(1)
			}}
		}
		handle(t, inf, count(&usual))
		reg, err := inf.AddEventHandlerWithResyncPeriod(count(&own), 10*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inf.AddEventHandlerWithResyncPeriod(count(&never), 0); err != nil {
			t.Fatal(err)
		}
		requests := s.count("LIST")
		time.Sleep(54*time.Minute - time.Second)
		want(t, usual.Load(), 0) // 10 % jitter at most
		time.Sleep(12*time.Minute + 2*time.Second)
		want(t, usual.Load(), 1)
		want(t, own.Load() >= 6 && own.Load() <= 7, true)
		want(t, never.Load(), 0)
		want(t, s.count("LIST"), requests)
		if err := inf.RemoveEventHandler(reg); err != nil {
			t.Fatal(err)
		}
		before := own.Load()
		time.Sleep(time.Hour)
		want(t, own.Load(), before)
	})
}

func TestWatchErrorHandlerHears(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.forbid("configmaps", failure(403, metav1.StatusReasonForbidden, "no rights"))
		var heard []error
		r := newRig(t, Options{DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			heard = append(heard, err)
		}}, s)
		_ = r.client.List(t.Context(), &corev1.ConfigMapList{})
		synctest.Wait()
		want(t, len(heard), 1)
		want(t, apierrors.IsForbidden(heard[0]), true)
	})
}

func TestBookmarksCanBeOff(t *testing.T) {
	within(t, func(t *testing.T) {
		off := false
		s := newServer()
		s.noStream = true
		var asked []string
		s.answers = func(req *http.Request) *http.Response {
			if req.URL.Query().Get("watch") != "" && req.URL.Query().Get("sendInitialEvents") == "" {
				asked = append(asked, req.URL.Query().Get("allowWatchBookmarks"))
			}
			return nil
		}
		r := newRig(t, Options{DefaultEnableWatchBookmarks: &off}, s)
		mustList(t, r.client)
		synctest.Wait()
		want(t, strings.Join(asked, ","), "")
		want(t, len(asked), 1)
	})
}

// laterMapper does not know a kind until it is installed.
type laterMapper struct {
	meta.RESTMapper
	installed atomic.Bool
}

func (m *laterMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if !m.installed.Load() {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return m.RESTMapper.RESTMapping(gk, versions...)
}

func TestKindInstalledLater(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("configmaps", "a", "m", nil))
		m := &laterMapper{RESTMapper: s.mapper()}
		r := newStoppedRig(t, Options{}, s)
		r.cache.mapper = m
		// The reason is known before the kind is asked for again.
		want(t, meta.IsNoMatchError(r.informer(t, &corev1.Pod{}, BlockUntilSynced(false)).(*informer).LastError()), true)
		r.start()
		err := r.cache.Get(t.Context(), key("a", "m"), configMap("", ""))
		want(t, meta.IsNoMatchError(err), true)
		_, err = r.cache.GetInformer(t.Context(), &corev1.ConfigMap{})
		want(t, meta.IsNoMatchError(err), true)

		began := time.Now()
		inf := r.informer(t, &corev1.ConfigMap{}, BlockUntilSynced(false))
		var heard atomic.Int32
		reg := handle(t, inf, toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { heard.Add(1) }})
		time.Sleep(time.Minute)
		want(t, reg.HasSynced(), false)
		want(t, meta.IsNoMatchError(inf.(*informer).LastError()), true)
		err = r.cache.Get(t.Context(), key("a", "m"), configMap("", ""))
		want(t, meta.IsNoMatchError(err), true)
		m.installed.Store(true)
		<-reg.HasSyncedChecker().Done()
		want(t, time.Since(began) <= time.Minute+15*time.Second, true)
		want(t, heard.Load(), 1)
		want(t, inf.(*informer).LastError(), nil)
	})
}

func TestKindGoesAndComesBack(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("configmaps", "a", "m", nil))
		r := newRig(t, Options{}, s)
		inf := r.informer(t, &corev1.ConfigMap{})
		s.forbid("configmaps", failure(404, metav1.StatusReasonNotFound, "the server could not find the requested resource"))
		s.remove("configmaps", "a", "m")
		synctest.Wait()
		s.cut("configmaps", true)
		time.Sleep(time.Minute)
		want(t, apierrors.IsNotFound(inf.(*informer).LastError()), true)
		s.put(t, object("configmaps", "a", "again", nil))
		s.forbid("configmaps", nil)
		time.Sleep(20 * time.Second)
		want(t, inf.(*informer).LastError(), nil)
		want(t, mustList(t, r.client), "[a/again]")
	})
}

func TestRemoveInformer(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("configmaps", "a", "m", nil))
		r := newRig(t, Options{}, s)
		inf := r.informer(t, &corev1.ConfigMap{})
		var heard atomic.Int32
		handle(t, inf, toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { heard.Add(1) }})
		synctest.Wait()
		if err := r.cache.RemoveInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		want(t, inf.IsStopped(), true)
		_, err := inf.AddEventHandler(toolscache.ResourceEventHandlerFuncs{})
		want(t, err != nil, true)
		s.put(t, object("configmaps", "a", "n", nil))
		synctest.Wait()
		want(t, heard.Load(), 1)
		want(t, mustList(t, r.client), "[a/m a/n]") // a new one
		if err := r.cache.RemoveInformer(t.Context(), &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}

		// Who waits on an informer that is removed is told.
		s.forbid("pods", failure(500, metav1.StatusReasonInternalError, "out of order"))
		done := make(chan error, 1)
		go func() { done <- r.client.List(context.Background(), &corev1.PodList{}) }()
		synctest.Wait()
		if err := r.cache.RemoveInformer(t.Context(), &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
		want(t, errors.Is(<-done, errStopped), true)
	})
}

// settleLimit bounds the wait for goroutines that are about to end.
const settleLimit = 20 * time.Second

// Informers added and removed a thousand times, in every form, leave no goroutine and no memory: not one object on the
// heap for each of them.
func TestInformersLeaveNothing(t *testing.T) {
	const informers = 1000
	s := newServer()
	for i := range 20 {
		s.put(t, object("configmaps", "a", fmt.Sprint("m", i), nil))
	}
	r := newRig(t, Options{}, s)
	examples := []client.Object{&corev1.ConfigMap{}, &metav1.PartialObjectMetadata{}, &unstructured.Unstructured{}}
	for _, obj := range examples[1:] {
		obj.GetObjectKind().SetGroupVersionKind(configMapKind)
	}
	rounds := func(n int) {
		for i := range n {
			obj := examples[i%len(examples)]
			inf := r.informer(t, obj)
			reg := handle(t, inf, toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {}})
			<-reg.HasSyncedChecker().Done()
			if err := r.cache.RemoveInformer(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			s.set(func() { s.requests = s.requests[:0] })
		}
	}
	settled := func() (m runtime.MemStats, goroutines int) {
		for range 20 {
			time.Sleep(5 * time.Millisecond) // bodies of closed watches end on their own
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m, runtime.NumGoroutine()
	}
	rounds(informers / 10)
	before, goroutines := settled()
	rounds(informers)
	after, goroutines2 := settled()
	leaks := func() bool { return goroutines2 > goroutines+2 }
	grows := func() bool {
		return after.HeapObjects > before.HeapObjects+informers/2 || after.HeapAlloc > before.HeapAlloc+256<<10
	}
	// What is left behind stays; what only takes its time, on a machine that does other things, does not.
	for end := time.Now().Add(settleLimit); (leaks() || grows()) && time.Now().Before(end); {
		after, goroutines2 = settled()
	}
	if leaks() {
		t.Errorf("%d goroutines, %d after %d informers", goroutines, goroutines2, informers)
	}
	if grows() {
		t.Errorf("%d objects in %d bytes, %d in %d after %d informers", before.HeapObjects, before.HeapAlloc, after.HeapObjects, after.HeapAlloc, informers)
	}
	t.Logf("%d objects in %d bytes, then %d in %d; %d goroutines, then %d", before.HeapObjects, before.HeapAlloc, after.HeapObjects, after.HeapAlloc, goroutines, goroutines2)
}

func TestProgramsOwnInformer(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		s.put(t, object("configmaps", "a", "m", map[string]any{"data": map[string]any{"n": "1"}}))
		var made toolscache.SharedIndexInformer
		r := newRig(t, Options{NewInformer: func(lw toolscache.ListerWatcher, obj kruntime.Object, d time.Duration, ix toolscache.Indexers) toolscache.SharedIndexInformer {
			made = toolscache.NewSharedIndexInformer(lw, obj, d, ix)
			return made
		}}, s)
		want(t, mustList(t, r.client), "[a/m]")
		want(t, len(made.GetStore().ListKeys()), 1)
		s.hold("configmaps")
		m := r.get(t, "a", "m")
		m.Data["n"] = "2"
		if err := r.client.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		want(t, r.get(t, "a", "m").Data["n"], "2")
		s.release("configmaps")
		synctest.Wait()
		want(t, onlyPart(t, r, "ConfigMap").overlay.size(), 0)
		s.remove("configmaps", "a", "m")
		synctest.Wait()
		want(t, mustList(t, r.client), "[]")
	})
}

// Objects present throughout a paged read appear exactly once, whatever else comes and goes.
func TestPagesUnderWrites(t *testing.T) {
	within(t, func(t *testing.T) {
		s := newServer()
		for i := range 40 {
			s.put(t, object("configmaps", "a", fmt.Sprintf("keep%02d", i), nil))
		}
		r := newRig(t, Options{}, s)
		mustList(t, r.client)
		rnd := rand.New(rand.NewPCG(3, 4))
		seen := map[string]int{}
		var list corev1.ConfigMapList
		for {
			if err := r.client.List(t.Context(), &list, client.InNamespace("a"), client.Limit(7), client.Continue(list.Continue)); err != nil {
				t.Fatal(err)
			}
			for _, name := range names(&list) {
				seen[name]++
			}
			if list.Continue == "" {
				break
			}
			for range 10 {
				name := fmt.Sprintf("%c-churn%d", 'a'+rune(rnd.IntN(26)), rnd.IntN(30))
				if rnd.IntN(2) == 0 {
					s.put(t, object("configmaps", "a", name, nil))
				} else {
					s.remove("configmaps", "a", name)
				}
			}
			synctest.Wait()
		}
		for i := range 40 {
			if n := seen[fmt.Sprintf("a/keep%02d", i)]; n != 1 {
				t.Errorf("keep%02d was seen %d times", i, n)
			}
		}
		err := r.client.List(t.Context(), &list, client.Continue("of another world"))
		want(t, apierrors.IsBadRequest(err), true)
	})
}
