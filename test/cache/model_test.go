// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client"
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
	restarts     = 2
	finalizer    = "example.com/f"
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

// worker writes its own keys, through the client under test and through another one, and checks every read.
type worker struct {
	t     *testing.T
	id    string
	rnd   *rand.Rand
	mine  client.Client // cached, reads its own writes
	other client.Client // live
	keys  map[string]*past
	log   []string
}

// TestModel drives a cache with random writes of this client and of others, finalizers, deletions, lost answers,
// held and broken watches, relists and restarts of the server, and compares every read with a model: own writes
// are visible at once, those of others in the end, and no reader ever goes back in time.
func TestModel(t *testing.T) {
	n := *seed
	if n == 0 {
		n = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: repeat with -args -seed %d", n, n)
	env := &envtest.Environment{ControlPlane: envtest.ControlPlane{Etcd: &envtest.Etcd{DataDir: t.TempDir()}}}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	env.ControlPlane.APIServer = &envtest.APIServer{SecurePort: portOf(t, cfg)}

	faults := newFaults()
	faulty := rest.CopyConfig(cfg)
	faulty.Wrap(faults.wrap)
	faulty.QPS = -1
	c := start(t, faulty, func(o *cluster.Options) { o.Client.Cache = &client.CacheOptions{Unstructured: true} })
	live := rest.CopyConfig(cfg)
	live.QPS = -1
	other, err := client.New(live, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var workers []*worker
	for i := range modelWorkers {
		w := &worker{t: t, id: fmt.Sprintf("w%d", i), rnd: rand.New(rand.NewPCG(n, uint64(i))), mine: c.GetClient(), other: other, keys: map[string]*past{}}
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.id}}
		if err := other.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		for k := range modelKeys {
			w.keys[fmt.Sprintf("k%d", k)] = &past{states: []state{{absent: true}}, floor: map[string]int{}}
		}
		workers = append(workers, w)
	}
	// Steps hold the server's lock for reading, a restart for writing.
	var server sync.RWMutex
	stop := make(chan struct{})
	var trouble, work sync.WaitGroup
	trouble.Go(func() { makeTrouble(rand.New(rand.NewPCG(n, 99)), faults, stop) })
	for _, w := range workers {
		work.Go(func() {
			for step := range *steps / modelWorkers {
				if t.Failed() {
					return
				}
				server.RLock()
				w.step(t.Context(), step)
				server.RUnlock()
			}
		})
	}
	for range restarts {
		time.Sleep(3 * time.Second)
		server.Lock()
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := env.Start(); err != nil {
			t.Error(err)
		}
		server.Unlock()
	}
	work.Wait()
	close(stop)
	trouble.Wait()
	faults.release()
	for _, w := range workers {
		w.settle(t.Context())
	}
}

func portOf(t *testing.T, cfg *rest.Config) int {
	t.Helper()
	u, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// start starts a cluster that ends with the test.
func start(t *testing.T, cfg *rest.Config, opts ...cluster.Option) cluster.Cluster {
	t.Helper()
	c, err := cluster.New(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if !c.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the cache did not start")
	}
	return c
}

func makeTrouble(rnd *rand.Rand, f *faults, stop <-chan struct{}) {
	for {
		wait := time.Duration(rnd.IntN(120)) * time.Millisecond
		switch rnd.IntN(10) {
		case 0:
			f.cut(false)
		case 1:
			f.cut(true)
		case 2, 3, 4, 5:
			f.hold()
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

func (w *worker) key() (string, *past) {
	name := fmt.Sprintf("k%d", w.rnd.IntN(modelKeys))
	return name, w.keys[name]
}

func stateOf(m client.Object, n string) state {
	return state{uid: m.GetUID(), version: m.GetResourceVersion(), n: n, label: m.GetLabels()["l"]}
}

// step writes once and reads a few times.
func (w *worker) step(ctx context.Context, step int) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	name, p := w.key()
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
	w.check(ctx, name, p)
	if other, p := w.key(); other != name {
		w.check(ctx, other, p)
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
	if err != nil && asStatus(err, &status) && status.Status().Code < 500 {
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
		for _, reader := range []string{"typed", "unstructured"} {
			p.floor[reader] = len(p.states) - 1
		}
	}
}

// seen checks that a reader may see a state, and that it has not gone back in time.
func (w *worker) seen(reader, how, name string, s state) {
	p := w.keys[name]
	for i := p.floor[reader]; i < len(p.states); i++ {
		if p.states[i] == s {
			p.floor[reader] = i
			return
		}
	}
	w.fail("%s %s of %s shows %v; it may show %v", reader, how, name, s, p.states[p.floor[reader]:])
}

// check reads one key in both stores' forms.
func (w *worker) check(ctx context.Context, name string, p *past) {
	key := types.NamespacedName{Namespace: w.id, Name: name}
	m := &corev1.ConfigMap{}
	var opts []client.GetOption
	if w.rnd.IntN(4) == 0 {
		opts = append(opts, client.UnsafeDisableDeepCopy)
	}
	switch err := w.mine.Get(ctx, key, m, opts...); {
	case err == nil:
		w.seen("typed", "get", name, stateOf(m, m.Data["n"]))
	case apierrors.IsNotFound(err):
		w.seen("typed", "get", name, state{absent: true})
	default:
		w.fail("get %s: %v", name, err)
	}
	if w.rnd.IntN(3) > 0 {
		return
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	switch err := w.mine.Get(ctx, key, u); {
	case err == nil:
		n, _, _ := unstructured.NestedString(u.Object, "data", "n")
		w.seen("unstructured", "get", name, stateOf(u, n))
	case apierrors.IsNotFound(err):
		w.seen("unstructured", "get", name, state{absent: true})
	default:
		w.fail("get %s unstructured: %v", name, err)
	}
}

// checkList lists the worker's objects, all or by label, whole or in pages.
func (w *worker) checkList(ctx context.Context) {
	opts := []client.ListOption{client.InNamespace(w.id)}
	label := ""
	if w.rnd.IntN(2) == 0 {
		label = fmt.Sprint(w.rnd.IntN(2))
		opts = append(opts, client.MatchingLabels{"l": label})
	}
	var list corev1.ConfigMapList
	if err := w.mine.List(ctx, &list, opts...); err != nil {
		w.fail("list: %v", err)
		return
	}
	found := map[string]bool{}
	for i := range list.Items {
		m := &list.Items[i]
		if m.Name == "kube-root-ca.crt" {
			continue
		}
		if found[m.Name] {
			w.fail("list shows %s twice", m.Name)
		}
		found[m.Name] = true
		if label != "" && m.Labels["l"] != label {
			w.fail("a list by label %s shows %s with label %s", label, m.Name, m.Labels["l"])
		}
		w.seen("typed", "list", m.Name, stateOf(m, m.Data["n"]))
	}
	for name, p := range w.keys {
		if found[name] {
			continue
		}
		if label == "" {
			w.seen("typed", "list", name, state{absent: true})
			continue
		}
		// It is absent or has another label, in one of the states that may be seen.
		ok := false
		for _, s := range p.states[p.floor["typed"]:] {
			ok = ok || s.absent || s.label != label
		}
		if !ok {
			w.fail("a list by label %s lacks %s, which is %v", label, name, p.states[p.floor["typed"]:])
		}
	}
}

// settle waits until the cache has seen everything.
func (w *worker) settle(ctx context.Context) {
	deadline := time.Now().Add(time.Minute)
	for name, p := range w.keys {
		last := p.states[len(p.states)-1]
		for {
			m := &corev1.ConfigMap{}
			now := state{absent: true}
			err := w.mine.Get(ctx, types.NamespacedName{Namespace: w.id, Name: name}, m)
			if err == nil {
				now = stateOf(m, m.Data["n"])
			} else if !apierrors.IsNotFound(err) {
				w.fail("get %s at the end: %v", name, err)
				return
			}
			if now == last {
				break
			}
			if time.Now().After(deadline) {
				w.fail("at the end %s is %v, the cache shows %v", name, last, now)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}
