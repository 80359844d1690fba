// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/cluster"
	"github.com/wherry-dev/wherry/test/envtest"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the randomized model test; 0 takes the time")
	steps = flag.Int("steps", 10_000, "steps of the randomized model test")
)

const (
	modelWorkers = 4
	modelKeys    = 5
	maxLag       = 30 * time.Millisecond  // of one read of a watch
	maxHeld      = 120 * time.Millisecond // of a watch, unless it is held again
	finalizer    = "example.com/f"
)

// The forms that readers of the model read in.
const (
	typed    = "typed"
	metadata = "metadata"
	untyped  = "unstructured"
)

// state is one state an object was in: absent, or an object at a version.
type state struct {
	absent  bool
	uid     types.UID
	version string
	n       string // what the object says
	label   string
}

func (s state) String() string {
	if s.absent {
		return "absent"
	}
	return fmt.Sprintf("%s@%s n=%s l=%s", s.uid[max(0, len(s.uid)-4):], s.version, s.n, s.label)
}

// past is every state an object was in, and how far each kind of reader has seen.
type past struct {
	states []state
	floor  map[string]int // reader → index into states
}

// world is what all workers share.
type world struct {
	mine  client.Client // cached, reads its own writes
	other client.Client // live
	// server is held for reading by a step, for writing while the server restarts or the informer is removed.
	server sync.RWMutex
	// whole says that typed reads have begun: until then the kind is read as metadata only, and stored so.
	whole atomic.Bool
	// done gets a value for each step.
	done chan struct{}
}

// worker writes its own keys, through the client under test and through another one, and checks every read.
type worker struct {
	*world
	t    *testing.T
	id   string
	rnd  *rand.Rand
	keys map[string]*past
	log  []string
}

// turn is what happens to the world when so many hundredths of the steps are done.
type turn struct {
	at   int
	what string
}

// turns has the kind begin anew as metadata nine times, read whole some steps later; and the server restart three times.
func turns() (all []turn) {
	for at := 4; at < 100; at += 10 {
		all = append(all, turn{at, "typed"}, turn{at + 5, "remove"})
	}
	all = append(all[:len(all)-1], turn{22, "restart"}, turn{55, "restart"}, turn{86, "restart"})
	slices.SortFunc(all, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	return all
}

// TestModel drives a cache with random writes of this client and of others, finalizers, deletions of one and of many,
// lost answers, held and broken watches, relists and restarts of the server, and compares every read with a model: own
// writes are visible at once, those of others in the end, and no reader ever goes back in time. Readers read in every
// form; a few times the informer is removed and the kind begins anew as metadata, and in mid-run typed reads have the
// store of metadata replaced by one of whole objects.
func TestModel(t *testing.T) {
	n := *seed
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: repeat with -args -seed %d", n, n)
	env := &envtest.Environment{ControlPlaneStartTimeout: startLimit, ControlPlane: envtest.ControlPlane{Etcd: &envtest.Etcd{DataDir: t.TempDir()}}}
	cfg, err := env.Start()
	must(t, err)
	t.Cleanup(func() { _ = env.Stop() })
	cfg.QPS = -1
	faulty, faults := heldWatches(cfg)
	cl := start(t, faulty)
	other, err := client.New(cfg, client.Options{Scheme: scheme})
	must(t, err)
	all := &world{mine: cl.GetClient(), other: other, done: make(chan struct{})}
	var workers []*worker
	for i := range modelWorkers {
		w := &worker{world: all, t: t, id: fmt.Sprintf("w%d", i), rnd: rand.New(rand.NewPCG(n, uint64(i))), keys: map[string]*past{}}
		must(t, other.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.id}}))
		for k := range modelKeys {
			w.keys[fmt.Sprintf("k%d", k)] = &past{states: []state{{absent: true}}, floor: map[string]int{}}
		}
		workers = append(workers, w)
	}
	stop := make(chan struct{})
	var trouble, work sync.WaitGroup
	trouble.Go(func() { makeTrouble(rand.New(rand.NewPCG(n, 99)), faults, stop) })
	for _, w := range workers {
		work.Go(func() { w.run(*steps / modelWorkers) })
	}
	go func() { work.Wait(); close(all.done) }()
	all.turnAt(t, env, cl, faults, *steps)
	close(stop)
	trouble.Wait()
	faults.release()
	for _, w := range workers {
		w.settle(t.Context())
	}
}

// run takes steps until there is a failure.
func (w *worker) run(n int) {
	for step := range n {
		if w.t.Failed() {
			return
		}
		w.server.RLock()
		w.step(w.t.Context(), step)
		w.server.RUnlock()
		w.done <- struct{}{}
	}
}

// turnAt counts the steps that are done, all of n, and makes the turns.
func (a *world) turnAt(t *testing.T, env *envtest.Environment, cl cluster.Cluster, faults *faults, n int) {
	left, count := turns(), 0
	for range a.done {
		count++
		if len(left) == 0 || count < n*left[0].at/100 {
			continue
		}
		switch left[0].what {
		case "typed":
			// Without the lock: the upgrade is to meet what is going on. While the new store's first state is held back
			// there are writes that it lacks, and their events come late.
			faults.hold()
			a.whole.Store(true)
			time.Sleep(maxHeld) // other steps write in this time
			faults.release()
			faults.lag(maxLag)
		case "remove":
			a.locked(func() error {
				a.whole.Store(false)
				untyped := shape{configMapKind, apiutil.Unstructured}.object("", "")
				return errors.Join(cl.GetCache().RemoveInformer(t.Context(), &corev1.ConfigMap{}), cl.GetCache().RemoveInformer(t.Context(), untyped))
			}, t)
		case "restart":
			a.locked(func() error {
				if err := env.Stop(); err != nil {
					return err
				}
				_, err := env.Start()
				return err
			}, t)
		}
		left = left[1:]
	}
	if count == n && len(left) > 0 {
		t.Errorf("all steps are done, and these turns were not made: %v", left)
	}
}

// locked does something between steps.
func (a *world) locked(f func() error, t *testing.T) {
	// Workers that have ended a step wait to tell so, those in a step end it: nobody waits for the other.
	a.server.Lock()
	defer a.server.Unlock()
	if err := f(); err != nil {
		t.Error(err)
	}
}

func makeTrouble(rnd *rand.Rand, f *faults, stop <-chan struct{}) {
	for {
		wait := time.Duration(rnd.Int64N(int64(maxHeld)))
		switch rnd.IntN(10) {
		case 0:
			f.cut(false)
		case 1:
			f.cut(true)
		case 2, 3, 4:
			f.hold()
		case 5, 6:
			f.lag(time.Duration(rnd.Int64N(int64(maxLag))))
		default:
			f.release()
		}
		select {
		case <-stop:
			return
		case <-time.After(wait):
		}
	}
}

func (w *worker) fail(format string, args ...any) {
	w.t.Helper()
	last := w.log
	if len(last) > 25 {
		last = last[len(last)-25:]
	}
	w.t.Errorf("%s: %s\n%s", w.id, fmt.Sprintf(format, args...), strings.Join(last, "\n"))
}

func (w *worker) key() string { return fmt.Sprintf("k%d", w.rnd.IntN(modelKeys)) }

func stateOf(m client.Object, n string) state {
	return state{uid: m.GetUID(), version: m.GetResourceVersion(), n: n, label: m.GetLabels()["l"]}
}

// step writes once and reads a few times.
func (w *worker) step(ctx context.Context, step int) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	name := w.key()
	own := w.rnd.IntN(3) > 0
	lost := own && w.rnd.IntN(12) == 0
	wctx := ctx
	if lost {
		wctx = context.WithValue(ctx, loseAnswer{}, true)
	}
	writer := w.other
	if own {
		writer = w.mine
	}
	what := w.write(wctx, writer, name, fmt.Sprint(step))
	w.log = append(w.log, fmt.Sprintf("%d own=%v lost=%v %s %s", step, own, lost, what, name))
	touched := []string{name}
	if strings.HasPrefix(what, "delete all") {
		touched = nil
		for k := range w.keys {
			touched = append(touched, k)
		}
	}
	for _, k := range touched {
		w.learn(ctx, k, own && what != "", len(touched) > 1)
	}
	w.check(ctx, name)
	if other := w.key(); other != name {
		w.check(ctx, other)
	}
	if w.rnd.IntN(3) == 0 {
		w.checkList(ctx)
	}
}

// write does one random thing to a key and says what, or nothing if the server refused it.
func (w *worker) write(ctx context.Context, c client.Client, name, n string) string {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.id, Name: name, Labels: map[string]string{"l": fmt.Sprint(w.rnd.IntN(2))}},
		Data: map[string]string{"n": n}}
	label := fmt.Sprint(w.rnd.IntN(2))
	var err error
	what := ""
	switch w.rnd.IntN(11) {
	case 0, 1:
		what = "create"
		if w.rnd.IntN(3) == 0 {
			m.Finalizers = []string{finalizer}
			what = "create finalized"
		}
		err = c.Create(ctx, m)
	case 2, 3, 4:
		what = "update"
		now := &corev1.ConfigMap{}
		if err = w.other.Get(context.WithoutCancel(ctx), client.ObjectKeyFromObject(m), now); err == nil {
			now.Labels, now.Data = m.Labels, m.Data
			err = c.Update(ctx, now)
		}
	case 5, 6:
		what = "patch"
		err = c.Patch(ctx, m, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"l":%q}},"data":{"n":%q}}`, label, n)))
	case 7:
		what = "patch metadata"
		part := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: w.id, Name: name}}
		part.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		err = c.Patch(ctx, part, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"l":%q}}}`, label)))
	case 8:
		what = "delete"
		err = c.Delete(ctx, m)
	case 9:
		what = "remove finalizers"
		err = c.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	default:
		if w.rnd.IntN(4) > 0 {
			what = "update unstructured"
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			if err = w.other.Get(context.WithoutCancel(ctx), client.ObjectKeyFromObject(m), u); err == nil {
				u.Object["data"] = map[string]any{"n": n}
				err = c.Update(ctx, u)
			}
			break
		}
		what = "delete all of " + label
		err = c.DeleteAllOf(ctx, m, client.InNamespace(w.id), client.MatchingLabels{"l": label})
	}
	var status apierrors.APIStatus
	if err != nil && errors.As(err, &status) && status.Status().Code < 500 {
		return "" // refused: nothing was written
	}
	return what
}

// learn asks the server for the present state of a key and adds it to the model. After an own write all readers
// have to see it, whatever the answer was; of a deletion of many, the keys that it changed.
func (w *worker) learn(ctx context.Context, name string, own, many bool) {
	p := w.keys[name]
	now := state{absent: true}
	m := &corev1.ConfigMap{}
	switch err := w.other.Get(ctx, types.NamespacedName{Namespace: w.id, Name: name}, m); {
	case err == nil:
		now = stateOf(m, m.Data["n"])
	case !apierrors.IsNotFound(err):
		w.fail("read %s live: %v", name, err)
		return
	}
	last := p.states[len(p.states)-1]
	if last != now {
		p.states = append(p.states, now)
	}
	if own && (!many || last != now) {
		for _, reader := range []string{typed, metadata, untyped} {
			p.floor[reader] = len(p.states) - 1
		}
	}
}

// seen checks that a reader may see a state, and that it has not gone back in time.
func (w *worker) seen(reader, how, name string, s state) {
	p := w.keys[name]
	for i := p.floor[reader]; i < len(p.states); i++ {
		known := p.states[i]
		if reader == metadata {
			known.n = "" // metadata does not tell
		}
		if known == s {
			p.floor[reader] = i
			return
		}
	}
	w.fail("%s %s of %s shows %v; it may show %v", reader, how, name, s, p.states[p.floor[reader]:])
}

// check reads one key, in one form or more.
func (w *worker) check(ctx context.Context, name string) {
	if w.whole.Load() {
		m := &corev1.ConfigMap{}
		w.get(ctx, typed, name, m, func() string { return m.Data["n"] })
	}
	if w.rnd.IntN(2) == 0 || !w.whole.Load() {
		w.get(ctx, metadata, name, shape{configMapKind, apiutil.Metadata}.object("", ""), func() string { return "" })
	}
	if w.rnd.IntN(3) == 0 {
		u := shape{configMapKind, apiutil.Unstructured}.object("", "").(*unstructured.Unstructured)
		w.get(ctx, untyped, name, u, func() string {
			n, _, _ := unstructured.NestedString(u.Object, "data", "n")
			return n
		})
	}
}

// get reads one key in one form; n tells what the object says.
func (w *worker) get(ctx context.Context, reader, name string, into client.Object, n func() string) {
	var opts []client.GetOption
	if w.rnd.IntN(4) == 0 {
		opts = append(opts, client.UnsafeDisableDeepCopy)
	}
	switch err := w.mine.Get(ctx, types.NamespacedName{Namespace: w.id, Name: name}, into, opts...); {
	case err == nil:
		w.seen(reader, "get", name, stateOf(into, n()))
	case apierrors.IsNotFound(err):
		w.seen(reader, "get", name, state{absent: true})
	default:
		w.fail("get %s %s: %v", reader, name, err)
	}
}

// checkList lists the worker's objects, typed or as metadata, all or by label, whole or in pages.
func (w *worker) checkList(ctx context.Context) {
	opts := []client.ListOption{client.InNamespace(w.id)}
	label := ""
	if w.rnd.IntN(2) == 0 {
		label = fmt.Sprint(w.rnd.IntN(2))
		opts = append(opts, client.MatchingLabels{"l": label})
	}
	reader, form := metadata, shape{configMapKind, apiutil.Metadata}
	if w.whole.Load() && w.rnd.IntN(3) > 0 {
		reader, form = typed, shape{configMapKind, apiutil.Typed}
	}
	limit := int64(w.rnd.IntN(4)) // 0 for all at once
	found := map[string]bool{}
	for list := form.list(); ; {
		if err := w.mine.List(ctx, list, append(opts, client.Limit(limit), client.Continue(list.GetContinue()))...); err != nil {
			w.fail("list %s: %v", reader, err)
			return
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			w.fail("list %s: %v", reader, err)
			return
		}
		for _, item := range items {
			w.listed(reader, label, item.(client.Object), found)
		}
		if list.GetContinue() == "" {
			break
		}
	}
	w.notListed(reader, label, found)
}

// listed checks one object of a list.
func (w *worker) listed(reader, label string, obj client.Object, found map[string]bool) {
	name := obj.GetName()
	if name == "kube-root-ca.crt" {
		return
	}
	if found[name] {
		w.fail("list %s shows %s twice", reader, name)
	}
	found[name] = true
	if label != "" && obj.GetLabels()["l"] != label {
		w.fail("a list by label %s shows %s with label %s", label, name, obj.GetLabels()["l"])
	}
	n := ""
	if m, ok := obj.(*corev1.ConfigMap); ok {
		n = m.Data["n"]
	}
	w.seen(reader, "list", name, stateOf(obj, n))
}

// notListed checks that what a list lacks is absent or has another label, in one of the states that may be seen.
func (w *worker) notListed(reader, label string, found map[string]bool) {
	for name, p := range w.keys {
		if found[name] {
			continue
		}
		if label == "" {
			w.seen(reader, "list", name, state{absent: true})
			continue
		}
		ok := false
		for _, s := range p.states[p.floor[reader]:] {
			ok = ok || s.absent || s.label != label
		}
		if !ok {
			w.fail("a list %s by label %s lacks %s, which is %v", reader, label, name, p.states[p.floor[reader]:])
		}
	}
}

// settle waits until the cache has seen everything, in every form.
func (w *worker) settle(ctx context.Context) {
	for name, p := range w.keys {
		last := p.states[len(p.states)-1]
		m := &corev1.ConfigMap{}
		u := shape{configMapKind, apiutil.Unstructured}.object("", "").(*unstructured.Unstructured)
		part := shape{configMapKind, apiutil.Metadata}.object("", "")
		w.settled(ctx, typed, name, m, last, func() string { return m.Data["n"] })
		w.settled(ctx, metadata, name, part, last, func() string { return last.n })
		w.settled(ctx, untyped, name, u, last, func() string {
			n, _, _ := unstructured.NestedString(u.Object, "data", "n")
			return n
		})
	}
}

// settled waits until a reader sees the last state of a key.
func (w *worker) settled(ctx context.Context, reader, name string, into client.Object, last state, n func() string) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		now := state{absent: true}
		err := w.mine.Get(ctx, types.NamespacedName{Namespace: w.id, Name: name}, into)
		if err == nil {
			now = stateOf(into, n())
		} else if !apierrors.IsNotFound(err) {
			w.fail("get %s %s at the end: %v", reader, name, err)
			return
		}
		if now == last {
			return
		}
		if time.Now().After(deadline) {
			w.fail("at the end %s is %v, the cache shows %v to the reader %s", name, last, now, reader)
			return
		}
	}
}
