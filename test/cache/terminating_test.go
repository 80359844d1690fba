// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/metrics/server"
)

const (
	terminating = 5 * time.Second // how long the namespace of ST-4 is kept from its end, at least
	minRuns     = 3               // of a key whose reconcile fails, in that time
	maxRuns     = 15              // a run waits twice as long as the one before it: there would be no more in two minutes
	writeEvery  = 250 * time.Millisecond
)

// deployer reconciles each Widget into one Deployment, and counts.
type deployer struct {
	client.Client
	mu     sync.Mutex
	runs   map[types.NamespacedName]int
	failed map[types.NamespacedName]error
}

func (d *deployer) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	err := d.deploy(ctx, req)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs[req.NamespacedName]++
	d.failed[req.NamespacedName] = err
	return ctrl.Result{}, err
}

func (d *deployer) deploy(ctx context.Context, req ctrl.Request) error {
	w := &Widget{}
	if err := d.Get(ctx, req.NamespacedName, w); err != nil {
		return client.IgnoreNotFound(err)
	}
	labels := map[string]string{"app": w.Name}
	out := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: labels}}
	out.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	out.Spec.Template.Labels = labels
	out.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	if err := ctrl.SetControllerReference(w, out, d.Scheme()); err != nil {
		return err
	}
	switch err := d.Get(ctx, req.NamespacedName, &appsv1.Deployment{}); {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return err
	}
	return d.Create(ctx, out)
}

// since returns how often a key ran and how the last time ended, and begins to count anew.
func (d *deployer) since(key types.NamespacedName) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.runs[key]
	d.runs[key] = 0
	return n, d.failed[key]
}

func (d *deployer) count(key types.NamespacedName) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs[key]
}

// eventPosts counts the requests that send an event about a namespace.
type eventPosts struct {
	namespace string
	next      http.RoundTripper
	n         atomic.Int32
}

func (e *eventPosts) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/namespaces/"+e.namespace+"/events") {
		e.n.Add(1)
	}
	return e.next.RoundTrip(req)
}

// ST-4, the manager's half: while a namespace is kept from its end, a refused create leaves nothing in what the
// client reads, events are dropped without a storm, a failing reconcile backs off, all other writes work; then the
// namespace and all in it go, every watcher hears it, and its namesake is empty.
func TestTerminatingNamespace(t *testing.T) {
	bye := namespace(t)
	posts := &eventPosts{namespace: bye}
	cfg := rest.CopyConfig(config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { posts.next = next; return posts })
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	c := mgr.GetClient()
	d := &deployer{Client: c, runs: map[types.NamespacedName]int{}, failed: map[types.NamespacedName]error{}}
	must(t, ctrl.NewControllerManagedBy(mgr).For(&Widget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).Owns(&appsv1.Deployment{}).Complete(d))
	manage(t, mgr)

	f := shape{configMapKind, apiutil.Typed}.object(bye, "f").(*corev1.ConfigMap)
	f.Finalizers = []string{finalizer}
	w := shape{widgetKind, apiutil.Typed}.object(bye, "w").(*Widget)
	w.Finalizers = []string{finalizer} // else the namespace's end would take it away at once
	must(t, c.Create(t.Context(), f), c.Create(t.Context(), w))
	key := client.ObjectKeyFromObject(w)
	eventually(t, "there is no Deployment", settle, func() bool { return c.Get(t.Context(), key, &appsv1.Deployment{}) == nil })
	gone := map[string]*heard{}
	for _, kind := range []shape{{configMapKind, apiutil.Typed}, {widgetKind, apiutil.Typed}, {appsv1.SchemeGroupVersion.WithKind("Deployment"), apiutil.Typed}} {
		gone[kind.kind.Kind] = hear(t, mgr, kind, nil)
	}

	first := &corev1.Namespace{}
	must(t, c.Get(t.Context(), types.NamespacedName{Name: bye}, first))
	d.since(key)
	began := time.Now()
	must(t, c.Delete(t.Context(), first.DeepCopy()))
	sent := writeIntoTerminating(t, mgr, bye, func() bool {
		// The namespace's controller takes the Deployment away, which is what the reconcile fails for, in its own time.
		return time.Since(began) < terminating || d.count(key) < minRuns && time.Since(began) < settle
	})
	runs, failure := d.since(key)
	t.Logf("%d runs, %d events recorded, %d sent", runs, sent, posts.n.Load())
	if runs > maxRuns || runs < minRuns {
		t.Errorf("the reconcile ran %d times in %s: wanted are %d, at most %d", runs, time.Since(began), minRuns, maxRuns)
	}
	if !apierrors.HasStatusCause(failure, corev1.NamespaceTerminatingCause) {
		t.Errorf("the reconcile failed with %v", failure)
	}
	if n := posts.n.Load(); n == 0 || int(n) > sent {
		t.Errorf("%d events were recorded and sent %d times: none may be tried twice", sent, n)
	}
	endOfNamespace(t, c, bye, first.UID, gone)
}

// manage runs a manager to the end of the test.
func manage(t *testing.T, mgr manager.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	<-mgr.Elected() // not WaitForCacheSync: a kind that is watched may not be installed yet
}

// writeIntoTerminating does, as long as goesOn, all that an operator does in its namespaces. It returns how many events
// it recorded.
func writeIntoTerminating(t *testing.T, mgr manager.Manager, bye string, goesOn func() bool) (events int) {
	c, ctx := mgr.GetClient(), t.Context()
	recorder := mgr.GetEventRecorder("test")
	for ; goesOn(); time.Sleep(writeEvery) {
		now := &corev1.Namespace{}
		must(t, c.Get(ctx, types.NamespacedName{Name: bye}, now))
		if now.DeletionTimestamp == nil {
			t.Error("the namespace is not shown as terminating right after its deletion")
		}
		n := shape{configMapKind, apiutil.Typed}
		if err := c.Create(ctx, n.object(bye, "n")); !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			t.Errorf("a create was answered with %v", err)
		}
		if n.there(t, c, bye, "n") {
			t.Error("a refused create is shown")
		}
		if got := n.listed(t, c, client.InNamespace(bye)); len(got) != 1 || strings.TrimSuffix(got[0], "!") != bye+"/f" {
			t.Errorf("the namespace's ConfigMaps are shown as %v", got)
		}

		f, w, round := n.object(bye, "f").(*corev1.ConfigMap), &Widget{}, fmt.Sprint("round ", events)
		must(t, c.Get(ctx, client.ObjectKeyFromObject(f), f))
		f.Data = map[string]string{"round": round}
		must(t, c.Update(ctx, f), c.Get(ctx, client.ObjectKeyFromObject(f), f))
		w.Namespace, w.Name = bye, "w"
		must(t, c.Status().Patch(ctx, w, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, round))))
		must(t, c.Get(ctx, client.ObjectKeyFromObject(w), w))
		if f.Data["round"] != round || w.Status.Phase != round {
			t.Errorf("written %q, read back %q and %q", round, f.Data["round"], w.Status.Phase)
		}
		recorder.Eventf(f, nil, corev1.EventTypeNormal, "Going", "Wait", "%s", round)
		events++
	}
	return events
}

// endOfNamespace lets the namespace go, and looks at what is left: nothing, also in its namesake.
func endOfNamespace(t *testing.T, c client.Client, bye string, uid types.UID, gone map[string]*heard) {
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	f, w := shape{configMapKind, apiutil.Typed}, shape{widgetKind, apiutil.Typed}
	must(t, c.Patch(t.Context(), f.object(bye, "f"), free), c.Patch(t.Context(), w.object(bye, "w"), free))
	if f.there(t, c, bye, "f") || w.there(t, c, bye, "w") {
		t.Error("an object is shown after its last finalizer went")
	}
	eventually(t, "the namespace is still there", settle, func() bool {
		return apierrors.IsNotFound(c.Get(t.Context(), types.NamespacedName{Name: bye}, &corev1.Namespace{}))
	})
	for kind, name := range map[string]string{"ConfigMap": "f", "Widget": "w", "Deployment": "w"} {
		eventually(t, kind+": no watcher heard of the end", settle, func() bool {
			return gone[kind].told("delete " + bye + "/" + name)
		})
	}
	again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bye}}
	must(t, c.Create(t.Context(), again))
	if again.UID == uid {
		t.Error("the namesake has the old UID")
	}
	now := &corev1.Namespace{}
	must(t, c.Get(t.Context(), types.NamespacedName{Name: bye}, now))
	if now.UID != again.UID || now.DeletionTimestamp != nil {
		t.Errorf("the namesake is shown as %s, deleted %v", now.UID, now.DeletionTimestamp)
	}
	for _, s := range []shape{f, w, {appsv1.SchemeGroupVersion.WithKind("Deployment"), apiutil.Typed}} {
		want(t, s.String()+" in the namesake", s.listed(t, c, client.InNamespace(bye)))
	}
}
