// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// record is one event as a validator sees it.
type record struct {
	kind watch.EventType
	name string
	rev  int64
	text string
}

func recordOf(t testing.TB, e watch.Event) record {
	t.Helper()
	if e.Type == watch.Error {
		return record{kind: watch.Error, rev: int64(e.Object.(*metav1.Status).Code)}
	}
	m, err := meta.Accessor(e.Object)
	if err != nil {
		t.Fatal(err)
	}
	rev, err := strconv.ParseInt(m.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return record{kind: e.Type, name: m.GetName(), rev: rev, text: m.GetAnnotations()["text"]}
}

func pod(name, text string, lab map[string]string) *example.Pod {
	return &example.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, Labels: lab, Annotations: map[string]string{"text": text},
	}}
}

func (b *bench) set(t testing.TB, name, text string, lab map[string]string) int64 {
	t.Helper()
	out := &example.Pod{}
	err := b.GuaranteedUpdate(b.ctx, "/pods/ns/"+name, out, true, nil, storage.SimpleUpdate(
		func(runtime.Object) (runtime.Object, error) { return pod(name, text, lab), nil }), nil)
	if err != nil {
		t.Fatal(err)
	}
	rev, _ := strconv.ParseInt(out.ResourceVersion, 10, 64)
	return rev
}

func (b *bench) remove(t testing.TB, name string) int64 {
	t.Helper()
	out := &example.Pod{}
	if err := b.Delete(b.ctx, "/pods/ns/"+name, out, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	rev, _ := strconv.ParseInt(out.ResourceVersion, 10, 64)
	return rev
}

func (b *bench) watch(t testing.TB, rev int64, change func(*storage.ListOptions)) watch.Interface {
	t.Helper()
	o := storage.ListOptions{ResourceVersion: strconv.FormatInt(rev, 10), Predicate: storage.Everything, Recursive: true}
	if change != nil {
		change(&o)
	}
	w, err := b.Watch(b.ctx, "/pods/", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func next(t testing.TB, w watch.Interface) record {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch has ended")
		}
		return recordOf(t, e)
	case <-time.After(patience):
		t.Fatal("no event")
	}
	return record{}
}

func selecting(key, value string) func(*storage.ListOptions) {
	return func(o *storage.ListOptions) {
		o.Predicate.Label = labels.SelectorFromSet(labels.Set{key: value})
		o.Predicate.GetAttrs = func(obj runtime.Object) (labels.Set, fields.Set, error) {
			return obj.(*example.Pod).Labels, nil, nil
		}
	}
}

// TestObjectLeavesSelector is case ST-2: what watchers with and without a selector hear when a label is removed and
// comes back, in every mode, live and resumed, over a restart too.
func TestObjectLeavesSelector(t *testing.T) {
	for _, mode := range []Mode{Durable, Memory} {
		t.Run(mode.String(), func(t *testing.T) {
			o := Options{Mode: mode}
			if mode != Memory {
				o.Dir = t.TempDir()
			}
			b := newBench(t, o)
			x := map[string]string{"app": "x"}
			start := b.store.Revision()
			w1, w2 := b.watch(t, start, selecting("app", "x")), b.watch(t, start, nil)
			r1 := b.set(t, "c", "v1", x)
			r2 := b.set(t, "c", "v2", x)
			r3 := b.set(t, "c", "v3", nil)
			r4 := b.set(t, "c", "v4", nil)
			r5 := b.set(t, "c", "v5", x)
			r6 := b.remove(t, "c")
			selected := []record{
				{watch.Added, "c", r1, "v1"}, {watch.Modified, "c", r2, "v2"},
				{watch.Deleted, "c", r3, "v2"}, // the last content that matched, at the revision at which it stopped
				{watch.Added, "c", r5, "v5"}, {watch.Deleted, "c", r6, "v5"},
			}
			all := []record{
				{watch.Added, "c", r1, "v1"}, {watch.Modified, "c", r2, "v2"}, {watch.Modified, "c", r3, "v3"},
				{watch.Modified, "c", r4, "v4"}, {watch.Modified, "c", r5, "v5"}, {watch.Deleted, "c", r6, "v5"},
			}
			expect := func(about string, w watch.Interface, want []record) {
				t.Helper()
				for _, r := range want {
					if got := next(t, w); got != r {
						t.Errorf("%s: got %+v, want %+v", about, got, r)
					}
				}
			}
			expect("selected", w1, selected)
			expect("all", w2, all)
			expect("selected, resumed", b.watch(t, r2, selecting("app", "x")), selected[2:])
			expect("all, resumed", b.watch(t, r2, nil), all[2:])
			if mode == Memory {
				return
			}
			if err := b.store.Close(); err != nil {
				t.Fatal(err)
			}
			b = newBench(t, o)
			expect("selected, after a restart", b.watch(t, r2, selecting("app", "x")), selected[2:])
			expect("all, after a restart", b.watch(t, r2, nil), all[2:])
		})
	}
}

// TestEndOfInitialEvents is case ST-5 at the level of the store: the bookmark that ends the initial events of a
// streaming list.
func TestEndOfInitialEvents(t *testing.T) {
	for _, mode := range []Mode{Durable, Relaxed, Memory} {
		for _, objects := range []int{0, 3000} {
			t.Run(fmt.Sprintf("%s/%d", mode, objects), func(t *testing.T) {
				o := Options{Mode: mode}
				if mode != Memory {
					o.Dir = t.TempDir()
				}
				s := openTest(t, o)
				b := newBenchOn(t, s)
				ops := make([]Op, objects)
				for i := range ops {
					data, err := runtime.Encode(b.codec, pod(fmt.Sprintf("p%04d", i), "", nil))
					if err != nil {
						t.Fatal(err)
					}
					ops[i] = Op{Key: fmt.Sprintf("/pods/ns/p%04d", i), Value: append([]byte(testPrefix), data...)}
				}
				if _, err := s.Txn(t.Context(), ops...); err != nil {
					t.Fatal(err)
				}
				if mode != Memory {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					s = openTest(t, o)
					b = newBenchOn(t, s)
				}
				for _, version := range []string{"", "0", "current"} {
					for _, none := range []bool{false, true} {
						streamingList(t, b, version, none, objects)
					}
				}
			})
		}
	}
}

func streamingList(t *testing.T, b *bench, version string, none bool, objects int) {
	t.Helper()
	at := b.store.Revision()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	o := storage.ListOptions{
		ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		Predicate: storage.Everything, Recursive: true, SendInitialEvents: ptr.To(true),
	}
	if version == "current" {
		o.ResourceVersion = strconv.FormatInt(at, 10)
	}
	if none {
		selecting("no", "where")(&o)
		objects = 0
	}
	o.Predicate.AllowWatchBookmarks = true
	begun := time.Now()
	w, err := b.Watch(ctx, "/pods/", o)
	if err != nil {
		t.Fatal(err)
	}
	var last int64
	for range objects {
		r := next(t, w)
		if r.kind != watch.Added {
			t.Fatalf("got %+v among the initial events", r)
		}
		last = max(last, r.rev)
	}
	e := <-w.ResultChan()
	ended, err := storage.HasInitialEventsEndBookmarkAnnotation(e.Object)
	if e.Type != watch.Bookmark || err != nil || !ended {
		t.Fatalf("got %+v where the initial events end: %v", e, err)
	}
	if _, ok := e.Object.(*example.Pod); !ok {
		t.Errorf("the bookmark is a %T", e.Object)
	}
	mark := recordOf(t, e)
	if mark.rev < at || mark.rev < last {
		t.Errorf("the bookmark is at %d, the list at %d, its newest item at %d", mark.rev, at, last)
	}
	// The next bookmark comes after progressPeriod: an empty list must not have waited for it.
	if d := time.Since(begun); objects == 0 && d > progressPeriod-time.Second && !none {
		t.Errorf("an empty list took %v", d)
	}
	if none {
		return
	}
	rev := b.set(t, "live", strconv.FormatInt(at, 10), nil)
	if r := next(t, w); r.rev != rev || r.rev <= mark.rev {
		t.Errorf("the first live event is %+v, want revision %d", r, rev)
	}
	b.remove(t, "live")
}

func TestWatchFromForgottenRevision(t *testing.T) {
	b := newBench(t, Options{Mode: Memory})
	r1 := b.set(t, "a", "1", nil)
	r2 := b.set(t, "a", "2", nil)
	if err := b.store.Compact(r2); err != nil {
		t.Fatal(err)
	}
	if r := next(t, b.watch(t, r1, nil)); r.kind != watch.Error || r.rev != http.StatusGone {
		t.Errorf("a watch from a forgotten revision got %+v", r)
	}
	r3 := b.set(t, "a", "3", nil)
	if r := next(t, b.watch(t, r2, nil)); r != (record{watch.Modified, "a", r3, "3"}) {
		t.Errorf("a watch from the floor got %+v", r)
	}
	if r := next(t, b.watch(t, r3+100, nil)); r.kind != watch.Error || r.rev != http.StatusGatewayTimeout {
		t.Errorf("a watch from the future got %+v", r)
	}
}

// TestSlowWatcherIsCut lets a watcher sleep while history moves on.
func TestSlowWatcherIsCut(t *testing.T) {
	b := newBench(t, Options{Mode: Memory, HistoryEvents: 500, HistoryAge: time.Nanosecond})
	slow := b.watch(t, b.store.Revision(), nil)
	last := b.store.Revision()
	const writes = 5000
	begun := time.Now()
	for i := range writes {
		b.set(t, "a", strconv.Itoa(i), nil)
	}
	t.Logf("%d writes past a watcher that does not read: %v", writes, time.Since(begun))
	for {
		r := next(t, slow)
		if r.kind == watch.Error {
			if r.rev != http.StatusGone {
				t.Errorf("cut with status %d", r.rev)
			}
			break
		}
		if r.rev != last+1 {
			t.Fatalf("revision %d follows %d: a gap", r.rev, last)
		}
		if last = r.rev; r.text == strconv.Itoa(writes-1) {
			t.Fatal("it got everything: it was not slow enough")
		}
	}
	if _, ok := <-slow.ResultChan(); ok {
		t.Error("something came behind the error")
	}
}

// TestWatchProperties runs writers, compaction and watchers side by side and checks the properties a watch must have:
// ordered, unique, without gaps, resumable, bookmarks never ahead, and an error instead of silence when the past is
// gone.
func TestWatchProperties(t *testing.T) {
	t.Parallel()
	const writers, rounds = 6, 300
	b := newBench(t, Options{Dir: t.TempDir(), Mode: Relaxed, HistoryEvents: 600, HistoryAge: time.Nanosecond})
	start := b.store.Revision()
	stop := make(chan struct{})
	var mu sync.Mutex
	truth := make(map[int64]record) // what happened, told by those who did it
	var watching, writing sync.WaitGroup
	for w := range 8 {
		watching.Go(func() { follow(t, b, start, w, stop, &mu, truth) })
	}
	compacting := make(chan struct{})
	watching.Go(func() {
		for {
			select {
			case <-compacting:
				return
			case <-time.After(50 * time.Millisecond):
				if err := b.store.Compact(max(b.store.CompactRevision(), b.store.Revision()-300)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for w := range writers {
		writing.Go(func() {
			rng := rand.New(rand.NewSource(int64(w)))
			there := make(map[string]bool)
			for i := range rounds {
				name := fmt.Sprintf("w%d-%d", w, rng.Intn(4))
				r := record{name: name, kind: watch.Added, text: strconv.Itoa(i)}
				if there[name] {
					r.kind = watch.Modified
				}
				if there[name] && rng.Intn(3) == 0 {
					r.kind, r.text = watch.Deleted, ""
					r.rev = b.remove(t, name)
				} else {
					r.rev = b.set(t, name, r.text, nil)
				}
				there[name] = r.kind != watch.Deleted
				mu.Lock()
				truth[r.rev] = r
				mu.Unlock()
			}
		})
	}
	writing.Wait()
	close(compacting)
	if len(truth) != writers*rounds {
		t.Errorf("%d writes took %d revisions", writers*rounds, len(truth))
	}
	close(stop)
	watching.Wait()
}

// follow watches until it has seen the last revision after stop is closed. It resumes at random, and lists anew when
// it is told that the past is gone.
func follow(t *testing.T, b *bench, from int64, id int, stop chan struct{}, mu *sync.Mutex, truth map[int64]record) {
	rng := rand.New(rand.NewSource(int64(id)))
	var seen []record
	last, mark, cuts := from, int64(0), 0
	gap := true // whether something may be missing between last and the next event
	open := func() watch.Interface {
		return b.watch(t, last, func(o *storage.ListOptions) { o.ProgressNotify = true; o.Predicate.AllowWatchBookmarks = true })
	}
	w := open()
	ended := stop
	for done := false; !done; {
		select {
		case <-ended:
			ended = nil
			if err := b.RequestWatchProgress(b.ctx); err != nil {
				t.Error(err)
			}
		case e := <-w.ResultChan():
			r := recordOf(t, e)
			switch r.kind {
			case watch.Error:
				if r.rev != http.StatusGone {
					t.Errorf("watcher %d: status %d", id, r.rev)
				}
				if last >= b.store.CompactRevision() {
					t.Errorf("watcher %d: told that %d is gone, but the floor is %d", id, last, b.store.CompactRevision())
				}
				cuts++
				w.Stop()
				gap = true // what happened in between it will not hear: it lists
				last = b.store.Revision()
				w = open()
			case watch.Bookmark:
				if r.rev < last || r.rev < mark {
					t.Errorf("watcher %d: a bookmark at %d behind %d", id, r.rev, max(last, mark))
				}
				mark = r.rev
				done = ended == nil && r.rev == b.store.Revision()
			default:
				if r.rev <= last || r.rev <= mark {
					t.Errorf("watcher %d: event %d behind %d, bookmark %d", id, r.rev, last, mark)
				}
				if !gap && r.rev != last+1 {
					t.Errorf("watcher %d: %d follows %d: a gap", id, r.rev, last)
				}
				last, gap = r.rev, false
				seen = append(seen, r)
			}
			if rng.Intn(50) == 0 {
				w.Stop()
				w = open()
			}
		case <-time.After(patience):
			t.Errorf("watcher %d: stuck at %d of %d", id, last, b.store.Revision())
			return
		}
	}
	w.Stop()
	t.Logf("watcher %d: %d events, %d times cut", id, len(seen), cuts)
	mu.Lock()
	defer mu.Unlock()
	compareTruth(t, id, seen, truth)
}

// compareTruth compares what a watcher saw with what those who wrote say.
func compareTruth(t *testing.T, id int, seen []record, truth map[int64]record) {
	t.Helper()
	for _, r := range seen {
		want := truth[r.rev]
		if r.kind == watch.Deleted {
			r.text = ""
		}
		if r != want {
			t.Errorf("watcher %d: saw %+v, happened %+v", id, r, want)
		}
	}
	if len(seen) == 0 {
		t.Errorf("watcher %d saw nothing", id)
	}
}

// TestPagesAreOneRevision lists in pages while others write.
func TestPagesAreOneRevision(t *testing.T) {
	b := newBench(t, Options{Mode: Memory})
	want := make(map[string]string)
	for i := range 100 {
		name := fmt.Sprintf("p%02d", i)
		b.set(t, name, "before", nil)
		want[name] = "before"
	}
	got := make(map[string]string)
	o := storage.ListOptions{Predicate: storage.Everything, Recursive: true}
	o.Predicate.Limit = 7
	var rev string
	for page := 0; ; page++ {
		var list example.PodList
		if err := b.GetList(b.ctx, "/pods/", o, &list); err != nil {
			t.Fatal(err)
		}
		if page == 0 {
			rev = list.ResourceVersion
		}
		if list.ResourceVersion != rev {
			t.Errorf("page %d is of revision %s, the first of %s", page, list.ResourceVersion, rev)
		}
		for _, p := range list.Items {
			got[p.Name] = p.Annotations["text"]
		}
		if left := 100 - len(got); list.Continue != "" && (list.RemainingItemCount == nil || int(*list.RemainingItemCount) != left) {
			t.Errorf("page %d says %v remain, want %d", page, list.RemainingItemCount, left)
		}
		if list.Continue == "" {
			break
		}
		o.Predicate.Continue = list.Continue
		b.set(t, fmt.Sprintf("p%02d", 99-page), "after", nil)
		b.set(t, fmt.Sprintf("new%02d", page), "after", nil)
		b.remove(t, fmt.Sprintf("p%02d", 50+page))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the pages hold %v", got)
	}
	o.Predicate.Continue = ""
	var list example.PodList
	if err := b.GetList(b.ctx, "/pods/", o, &list); err != nil {
		t.Fatal(err)
	}
	o.Predicate.Continue = list.Continue
	b.set(t, "p00", "later", nil)
	if err := b.store.Compact(b.store.Revision()); err != nil {
		t.Fatal(err)
	}
	err := b.GetList(b.ctx, "/pods/", o, &list)
	var status *apierrors.StatusError
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) || status.ErrStatus.Continue == "" {
		t.Errorf("an expired token gave %v", err)
	}
}

// TestSharedObjectsAreGuarded checks that the mutation detector sees a reader that writes.
func TestSharedObjectsAreGuarded(t *testing.T) {
	s, err := Open(Options{Mode: Memory, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	b := newBenchOn(t, s)
	b.set(t, "a", "1", map[string]string{"x": "y"})
	got := &example.Pod{}
	if err := b.Get(b.ctx, "/pods/ns/a", storage.GetOptions{}, got); err != nil {
		t.Fatal(err)
	}
	got.Labels["x"] = "mine" // what Get gives is the caller's
	if err := s.Verify(); err != nil {
		t.Errorf("a change of what Get gave reached the store: %v", err)
	}
	var list example.PodList
	if err := b.GetList(b.ctx, "/pods/", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, &list); err != nil {
		t.Fatal(err)
	}
	list.Items[0].Labels["x"] = "oops" // what GetList gives is shared
	if err := s.Verify(); err == nil {
		t.Error("a reader changed a shared object and nobody noticed")
	}
	if err := s.Close(); err == nil {
		t.Error("nor at the end")
	}
}
