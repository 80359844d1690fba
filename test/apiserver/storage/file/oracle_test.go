// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/utils/ptr"
)

// oracle makes the same calls on our Storage and on Kubernetes' own etcd3 storage and compares the answers.
type oracle struct {
	t      *testing.T
	rng    *rand.Rand
	ours   *bench
	theirs storage.Interface
	kv     *plainKV
	tokens []string
	rev    int64
	step   int
}

func newOracle(t *testing.T, seed int64, sharing bool) *oracle {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	o := &oracle{t: t, rng: rand.New(rand.NewSource(seed)), ours: newBench(t, Options{Mode: Memory, NoSharing: !sharing}), kv: &plainKV{}}
	versioner := storage.APIObjectVersioner{}
	theirs, err := etcd3.New(o.kv.client(ctx), nil, o.ours.codec, o.ours.opts.NewFunc,
		func() runtime.Object { return &example.PodList{} }, "", "/pods/", schema.GroupResource{Resource: "pods"},
		storagetesting.NewPrefixTransformer([]byte(testPrefix), false), etcd3.NewDefaultLeaseManagerConfig(),
		etcd3.NewDefaultDecoder(o.ours.codec, versioner), versioner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(theirs.Close)
	o.theirs = theirs
	return o
}

// class tells what kind of error it is, as far as a caller can tell.
func class(err error) string {
	var s *storage.StorageError
	var api apierrors.APIStatus
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &s):
		return fmt.Sprintf("storage %d %s", s.Code, s.Key)
	case errors.As(err, &api):
		return fmt.Sprintf("api %d %s", api.Status().Code, api.Status().Reason)
	}
	return err.Error()
}

// same compares two answers.
func (o *oracle) same(what string, ours, theirs any, ourErr, theirErr error) {
	o.t.Helper()
	if a, b := class(ourErr), class(theirErr); a != b {
		o.t.Fatalf("step %d, %s: ours gave error %q (%v), etcd3 %q (%v)", o.step, what, a, ourErr, b, theirErr)
	}
	if ourErr == nil {
		if d := cmp.Diff(theirs, ours); d != "" {
			o.t.Fatalf("step %d, %s: answers differ (- etcd3, + ours):\n%s", o.step, what, d)
		}
	}
}

func (o *oracle) key() (key, ns, name string) {
	ns, name = fmt.Sprintf("ns%d", o.rng.Intn(3)), fmt.Sprintf("p%d", o.rng.Intn(6))
	return "/pods/" + ns + "/" + name, ns, name
}

func (o *oracle) pod(ns, name string) *example.Pod {
	p := &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(fmt.Sprint("u", o.rng.Intn(3)))}}
	p.Labels = map[string]string{"l": strconv.Itoa(o.rng.Intn(3))}
	p.Spec.NodeName = fmt.Sprintf("n%d", o.rng.Intn(2))
	return p
}

// version gives a resource version: none, any, past, present or future.
func (o *oracle) version() string {
	switch o.rng.Intn(6) {
	case 0:
		return "0"
	case 1:
		return strconv.FormatInt(o.rev, 10)
	case 2:
		return strconv.FormatInt(max(1, o.rev-int64(o.rng.Intn(30))), 10)
	case 3:
		if o.rng.Intn(4) == 0 {
			return []string{strconv.FormatInt(o.rev+5, 10), "x", "-1"}[o.rng.Intn(3)]
		}
	}
	return ""
}

func (o *oracle) predicate() storage.SelectionPredicate {
	p := storage.Everything
	p.GetAttrs = func(obj runtime.Object) (labels.Set, fields.Set, error) {
		pod := obj.(*example.Pod)
		return pod.Labels, fields.Set{"spec.nodeName": pod.Spec.NodeName}, nil
	}
	switch o.rng.Intn(4) {
	case 0:
		p.Label = labels.SelectorFromSet(labels.Set{"l": strconv.Itoa(o.rng.Intn(3))})
	case 1:
		p.Field = fields.OneTermNotEqualSelector("spec.nodeName", "n0")
	}
	return p
}

func (o *oracle) create(ctx context.Context) {
	key, ns, name := o.key()
	p := o.pod(ns, name)
	if o.rng.Intn(10) == 0 {
		p.ResourceVersion = "7"
	}
	var a, b example.Pod
	errA := o.ours.Create(ctx, key, p.DeepCopy(), &a, 0)
	errB := o.theirs.Create(ctx, key, p.DeepCopy(), &b, 0)
	o.same("create "+key, &a, &b, errA, errB)
}

func (o *oracle) preconditions() *storage.Preconditions {
	switch o.rng.Intn(5) {
	case 0:
		return storage.NewUIDPreconditions(fmt.Sprint("u", o.rng.Intn(3)))
	case 1:
		return &storage.Preconditions{ResourceVersion: ptr.To(strconv.FormatInt(o.rev-int64(o.rng.Intn(10)), 10))}
	}
	return nil
}

func (o *oracle) update(ctx context.Context) {
	key, ns, name := o.key()
	p, pre, ignore := o.pod(ns, name), o.preconditions(), o.rng.Intn(2) == 0
	how := o.rng.Intn(5)
	update := func(input runtime.Object, res storage.ResponseMeta) (runtime.Object, *uint64, error) {
		old := input.(*example.Pod)
		switch how {
		case 0:
			return old, nil, nil // nothing changes
		case 1:
			return nil, nil, errMade
		case 2:
			if old.Name != "" {
				old.Labels = map[string]string{"l": "changed in place"}
				return old, nil, nil
			}
		}
		return p.DeepCopy(), nil, nil
	}
	var a, b example.Pod
	errA := o.ours.GuaranteedUpdate(ctx, key, &a, ignore, pre, update, nil)
	errB := o.theirs.GuaranteedUpdate(ctx, key, &b, ignore, pre, update, nil)
	o.same(fmt.Sprintf("update %s %+v", key, pre), &a, &b, errA, errB)
}

func (o *oracle) remove(ctx context.Context) {
	key, _, _ := o.key()
	pre, refuse := o.preconditions(), o.rng.Intn(5) == 0
	validate := func(_ context.Context, obj runtime.Object) error {
		if refuse && obj.(*example.Pod).Labels["l"] != "0" {
			return errMade
		}
		return nil
	}
	var a, b example.Pod
	errA := o.ours.Delete(ctx, key, &a, pre, validate, nil, storage.DeleteOptions{})
	errB := o.theirs.Delete(ctx, key, &b, pre, validate, nil, storage.DeleteOptions{})
	o.same("delete "+key, &a, &b, errA, errB)
}

func (o *oracle) get(ctx context.Context) {
	key, _, _ := o.key()
	opts := storage.GetOptions{IgnoreNotFound: o.rng.Intn(2) == 0, ResourceVersion: o.version()}
	var a, b example.Pod
	errA := o.ours.Get(ctx, key, opts, &a)
	errB := o.theirs.Get(ctx, key, opts, &b)
	o.same(fmt.Sprintf("get %s %+v", key, opts), &a, &b, errA, errB)
}

func (o *oracle) list(ctx context.Context) {
	key := "/pods/"
	opts := storage.ListOptions{Predicate: o.predicate(), Recursive: o.rng.Intn(6) > 0}
	switch o.rng.Intn(4) {
	case 0:
		key = fmt.Sprintf("/pods/ns%d", o.rng.Intn(4))
	case 1:
		key, _, _ = o.key()
	}
	opts.ResourceVersion = o.version()
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		opts.ResourceVersionMatch = []metav1.ResourceVersionMatch{
			"", metav1.ResourceVersionMatchExact, metav1.ResourceVersionMatchNotOlderThan}[o.rng.Intn(3)]
	}
	if o.rng.Intn(2) == 0 {
		opts.Predicate.Limit = int64(1 + o.rng.Intn(5))
	}
	if len(o.tokens) > 0 && o.rng.Intn(3) == 0 {
		opts.Predicate.Continue = o.tokens[o.rng.Intn(len(o.tokens))]
		if o.rng.Intn(10) > 0 {
			opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
		}
	}
	var a, b example.PodList
	errA := o.ours.GetList(ctx, key, opts, &a)
	errB := o.theirs.GetList(ctx, key, opts, &b)
	o.same(fmt.Sprintf("list %s rv=%q match=%q limit=%d continue=%q recursive=%v %v %v", key, opts.ResourceVersion,
		opts.ResourceVersionMatch, opts.Predicate.Limit, opts.Predicate.Continue, opts.Recursive, opts.Predicate.Label,
		opts.Predicate.Field), &a, &b, errA, errB)
	if a.Continue != "" {
		o.tokens = append(o.tokens, a.Continue)
	}
	var status apierrors.APIStatus
	var other apierrors.APIStatus
	if errors.As(errA, &status) && errors.As(errB, &other) && status.Status().Continue != other.Status().Continue {
		o.t.Fatalf("step %d: a list that has expired goes on with %q, etcd3's with %q", o.step,
			status.Status().Continue, other.Status().Continue)
	}
}

func (o *oracle) count(ctx context.Context) {
	a, errA := o.ours.Stats(ctx)
	b, errB := o.theirs.Stats(ctx)
	a.EstimatedAverageObjectSizeBytes = 0 // etcd3 does not say without its estimator
	o.same("stats", a, b, errA, errB)
	all, err := o.ours.Count("/pods/")
	if err != nil || all != b.ObjectCount {
		o.t.Fatalf("step %d: count %d, etcd3 %d: %v", o.step, all, b.ObjectCount, err)
	}
}

func (o *oracle) compact(context.Context) {
	if o.rng.Intn(10) > 0 {
		return
	}
	rev := max(1, o.rev-int64(o.rng.Intn(20)))
	o.kv.compact(rev)
	if err := o.ours.store.Compact(rev); err != nil {
		o.t.Fatal(err)
	}
}

// watches are one watch of each storage.
type watches struct {
	what         string
	ours, theirs watch.Interface
}

func (o *oracle) watch(ctx context.Context) watches {
	opts := storage.ListOptions{Predicate: o.predicate(), Recursive: o.rng.Intn(4) > 0}
	key, _, _ := o.key()
	if opts.Recursive {
		key = []string{"/pods/", "/pods/ns1"}[o.rng.Intn(2)]
	}
	opts.ResourceVersion = []string{"", "0", strconv.FormatInt(o.rev, 10), strconv.FormatInt(max(1, o.rev-int64(o.rng.Intn(40))), 10)}[o.rng.Intn(4)]
	if o.rng.Intn(3) == 0 {
		opts.SendInitialEvents = ptr.To(o.rng.Intn(2) == 0)
		opts.Predicate.AllowWatchBookmarks = o.rng.Intn(2) == 0
	}
	before := o.taps()
	o.kv.mu.Lock()
	begun := o.kv.watches
	o.kv.mu.Unlock()
	a, errA := o.ours.Watch(ctx, key, opts)
	b, errB := o.theirs.Watch(ctx, key, opts)
	o.same("watch", nil, nil, errA, errB)
	// Both begin in the background. What is compacted before they have begun would be gone for one and not the other.
	for o.taps() == before && len(a.ResultChan()) == 0 {
		time.Sleep(time.Millisecond)
	}
	for ready := false; !ready && len(b.ResultChan()) == 0; {
		time.Sleep(time.Millisecond)
		o.kv.mu.Lock()
		ready = o.kv.watches > begun
		o.kv.mu.Unlock()
	}
	w := watches{what: fmt.Sprintf("step %d: watch %s rv=%q recursive=%v initial=%v bookmarks=%v %v %v", o.step, key, opts.ResourceVersion,
		opts.Recursive, opts.SendInitialEvents, opts.Predicate.AllowWatchBookmarks, opts.Predicate.Label, opts.Predicate.Field), ours: a, theirs: b}
	if opts.ResourceVersion == "" || opts.ResourceVersion == "0" || opts.SendInitialEvents != nil {
		w.compareSome(o.t) // so that both have listed before the next write
	}
	return w
}

// taps gives the number of our watches that have caught up with history, or been told that they cannot.
func (o *oracle) taps() (n int) {
	s := o.ours.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, m := range []map[string][]*tap{s.hub.prefixes, s.hub.keys} {
		for _, taps := range m {
			for _, t := range taps {
				t.mu.Lock()
				if !t.behind {
					n++
				}
				t.mu.Unlock()
			}
		}
	}
	return n
}

// take gives the next event, or nothing if none comes soon.
func take(w watch.Interface, patience time.Duration) *watch.Event {
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			return nil
		}
		if c, ok := e.Object.(runtime.CacheableObject); ok {
			e.Object = c.GetObject()
		}
		if s, ok := e.Object.(*metav1.Status); ok {
			e.Object = &metav1.Status{Code: s.Code, Reason: s.Reason} // the words are ours
		}
		return &e
	case <-time.After(patience):
		return nil
	}
}

// compareSome compares the events that are there.
func (w watches) compareSome(t *testing.T) (n int) {
	t.Helper()
	const soon, late = 20 * time.Millisecond, patience
	for ; ; n++ {
		ours := take(w.ours, soon)
		patience := soon
		if ours != nil {
			patience = late
		}
		theirs := take(w.theirs, patience)
		if ours == nil && theirs != nil {
			ours = take(w.ours, late)
		}
		if d := cmp.Diff(theirs, ours); d != "" {
			t.Fatalf("%s: event %d differs (- etcd3, + ours):\n%s", w.what, n, d)
		}
		if ours == nil {
			return n
		}
	}
}

// TestSameAnswersAsEtcd3 is the differential test.
func TestSameAnswersAsEtcd3(t *testing.T) {
	t.Parallel()
	seeds, steps := 10, 400
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		for _, sharing := range []bool{true, false} {
			t.Run(fmt.Sprintf("seed=%d/sharing=%v", seed, sharing), func(t *testing.T) {
				t.Parallel()
				o := newOracle(t, int64(seed), sharing)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				moves := []func(context.Context){
					o.create, o.create, o.update, o.update, o.update, o.remove, o.get, o.list, o.list, o.list, o.count, o.compact,
				}
				var open []watches
				for o.step = range steps {
					o.rev = o.ours.store.Revision()
					if theirs := o.kv.rev(); theirs != o.rev {
						t.Fatalf("step %d: revision %d, etcd3 %d", o.step, o.rev, theirs)
					}
					if o.step%40 == 17 {
						open = append(open, o.watch(ctx))
					}
					moves[o.rng.Intn(len(moves))](ctx)
				}
				events := 0
				for _, w := range open {
					events += w.compareSome(t)
				}
				t.Logf("%d steps, %d watches with %d events, revision %d", steps, len(open), events, o.rev)
			})
		}
	}
}
