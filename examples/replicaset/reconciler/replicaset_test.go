// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/client/interceptor"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// world is a fake server with one ReplicaSet in it.
type world struct {
	*testing.T
	*ReplicaSet
	creates  int
	refuse   func(n int) error // what the n-th create of a pod answers
	recorder []string
	mu       sync.Mutex
}

func (w *world) Eventf(_, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recorder = append(w.recorder, eventType+" "+reason+" "+fmt.Sprintf(note, args...))
}

func (w *world) AnnotatedEventf(regarding, related runtime.Object, _ map[string]string, eventType, reason, action, note string, args ...any) {
	w.Eventf(regarding, related, eventType, reason, action, note, args...)
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(s), corev1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithStatusSubresource(&appsv1.ReplicaSet{}, &corev1.Pod{}).
		WithIndex(&corev1.Pod{}, ByController, Controller).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if _, ok := obj.(*corev1.Pod); ok {
				w.mu.Lock()
				w.creates++
				n := w.creates
				obj.SetUID(types.UID(fmt.Sprintf("new-%d", n)))
				w.mu.Unlock()
				if w.refuse != nil {
					if err := w.refuse(n); err != nil {
						return err
					}
				}
			}
			return c.Create(ctx, obj, opts...)
		}}).Build()
	w.ReplicaSet = &ReplicaSet{Client: c, Live: c, Scheme: s, Recorder: w}
	return w
}

func set(replicas int32, change ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	labels := map[string]string{"app": "web"}
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "web-uid", Generation: 4},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
	for _, c := range change {
		c(rs)
	}
	return rs
}

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func ownedBy(uid string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: strings.TrimSuffix(uid, "-uid"), UID: types.UID(uid), Controller: ptr.To(true)}}
	}
}

func owned(p *corev1.Pod) { ownedBy("web-uid")(p) }
func leaving(p *corev1.Pod) {
	p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/f"}
}
func labelled(v string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": v} }
}

func phase(ph corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = ph } }

func onNode(p *corev1.Pod) { p.Spec.NodeName = "n1" }

func readyFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase = "n-"+p.Name, corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-d))}}
	}
}

// run reconciles once and returns the names of the pods that web controls
// then, without those that are leaving.
func (w *world) run() (mine []string, result ctrl.Result, err error) {
	w.Helper()
	result, err = w.Reconcile(w.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: "web"}})
	var list corev1.PodList
	if err := w.Client.List(w.Context(), &list); err != nil {
		w.Fatal(err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if o := metav1.GetControllerOf(p); o != nil && o.UID == "web-uid" && p.DeletionTimestamp == nil {
			mine = append(mine, p.Name)
		}
	}
	slices.Sort(mine)
	return mine, result, err
}

func (w *world) status() appsv1.ReplicaSetStatus {
	w.Helper()
	var rs appsv1.ReplicaSet
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: "a", Name: "web"}, &rs); err != nil {
		w.Fatal(err)
	}
	return rs.Status
}

// TestClaim covers who adopts, who is released, and what is left alone.
func TestClaim(t *testing.T) {
	dying := func(rs *appsv1.ReplicaSet) {
		rs.DeletionTimestamp, rs.Finalizers = &metav1.Time{Time: time.Now()}, []string{"foregroundDeletion"}
	}
	for name, c := range map[string]struct {
		set  *appsv1.ReplicaSet
		pods []client.Object
		want []string
	}{
		"orphan is adopted":              {set(1), []client.Object{pod("o")}, []string{"o"}},
		"owned is kept":                  {set(1), []client.Object{pod("o", owned)}, []string{"o"}},
		"other labels are left alone":    {set(0), []client.Object{pod("o", labelled("db"))}, nil},
		"owned, other labels: released":  {set(0), []client.Object{pod("o", owned, labelled("db"))}, nil},
		"another's is left alone":        {set(0), []client.Object{pod("o", ownedBy("db-uid"))}, nil},
		"leaving orphan is left alone":   {set(0), []client.Object{pod("o", leaving)}, nil},
		"finished orphan is left alone":  {set(0), []client.Object{pod("o", phase(corev1.PodFailed))}, nil},
		"dying set adopts nothing":       {set(1, dying), []client.Object{pod("o")}, nil},
		"dying set releases nothing":     {set(1, dying), []client.Object{pod("o", owned, labelled("db"))}, []string{"o"}},
		"dying set creates nothing":      {set(3, dying), nil, nil},
		"too many orphans: some go":      {set(1), []client.Object{pod("a", readyFor(time.Hour)), pod("b")}, []string{"a"}},
		"finished owned do not count":    {set(1), []client.Object{pod("o", owned, phase(corev1.PodSucceeded)), pod("p", owned)}, []string{"o", "p"}},
		"finished owned, other labels":   {set(0), []client.Object{pod("o", owned, phase(corev1.PodFailed), labelled("db"))}, []string{"o"}},
		"leaving owned do not count":     {set(1), []client.Object{pod("o", owned, leaving), pod("p", owned)}, []string{"p"}},
		"replicas not told means one":    {set(0, func(rs *appsv1.ReplicaSet) { rs.Spec.Replicas = nil }), []client.Object{pod("a", owned), pod("b", owned, readyFor(time.Hour))}, []string{"b"}},
		"a former life's pod is another": {set(0), []client.Object{pod("o", ownedBy("old-uid"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(c.pods, c.set)...)
			mine, _, err := w.run()
			if err != nil || !slices.Equal(mine, c.want) {
				t.Errorf("it has %v, %v, want %v", mine, err, c.want)
			}
		})
	}
}

// TestReleasedPodIsWhole wants a released pod to keep all but its owner.
func TestReleasedPodIsWhole(t *testing.T) {
	w := newWorld(t, set(1), pod("o", owned, labelled("db")))
	if mine, _, err := w.run(); err != nil || len(mine) != 1 || mine[0] == "o" {
		t.Errorf("it has %v, %v, want one new pod", mine, err)
	}
	var p corev1.Pod
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "o"}, &p); err != nil || len(p.OwnerReferences) != 0 || p.Labels["app"] != "db" {
		t.Errorf("the pod is %v, %v", p.ObjectMeta, err)
	}
}

// TestAdoptionNeedsALivingOwner wants the live ReplicaSet to be asked.
func TestAdoptionNeedsALivingOwner(t *testing.T) {
	w := newWorld(t, set(1), pod("o"))
	w.Live = newWorld(t, set(1, func(rs *appsv1.ReplicaSet) { rs.UID = "other" })).Client
	if mine, _, err := w.run(); err == nil || len(mine) != 0 {
		t.Errorf("it has %v, %v, want an error", mine, err)
	}
}

// TestScale wants the right number, an owner, the template, and events.
func TestScale(t *testing.T) {
	w := newWorld(t, set(9))
	mine, _, err := w.run()
	if err != nil || len(mine) != 9 {
		t.Fatalf("it has %v, %v", mine, err)
	}
	if len(w.recorder) != 9 || !strings.HasPrefix(w.recorder[0], "Normal SuccessfulCreate Created pod: web-") {
		t.Errorf("the events are %q", w.recorder)
	}
	if s := w.status(); s.Replicas != 9 || s.FullyLabeledReplicas != 9 || s.ObservedGeneration != 4 {
		t.Errorf("the status is %+v", s)
	}
	if again, _, err := w.run(); err != nil || !slices.Equal(again, mine) {
		t.Errorf("a second reconcile changes something: %v, %v", again, err)
	}
	var rs appsv1.ReplicaSet
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "web"}, &rs); err != nil {
		t.Fatal(err)
	}
	rs.Spec.Replicas = ptr.To[int32](2)
	if err := w.Client.Update(t.Context(), &rs); err != nil {
		t.Fatal(err)
	}
	if left, _, err := w.run(); err != nil || len(left) != 2 || w.status().Replicas != 2 {
		t.Errorf("after scaling down it has %v, %v, status %+v", left, err, w.status())
	}
}

// TestSlowStart wants a quota that is used up to be asked a few times only,
// the condition to tell, and to go when it is over.
func TestSlowStart(t *testing.T) {
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("exceeded quota"))
	for name, c := range map[string]struct{ fits, asked, has int }{
		"nothing fits": {0, 1, 0}, // 1
		"two fit":      {2, 3, 2}, // 1 2
		"five fit":     {5, 7, 5}, // 1 2 4
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, set(100))
			w.refuse = func(n int) error {
				if n > c.fits {
					return quota
				}
				return nil
			}
			mine, _, err := w.run()
			if !apierrors.IsForbidden(err) || w.creates != c.asked || len(mine) != c.has {
				t.Errorf("%d creates made %d pods, %v; want %d and %d", w.creates, len(mine), err, c.asked, c.has)
			}
			s := w.status()
			if len(s.Conditions) != 1 || s.Conditions[0].Type != appsv1.ReplicaSetReplicaFailure || s.Conditions[0].Reason != "FailedCreate" || !strings.Contains(s.Conditions[0].Message, "exceeded quota") || int(s.Replicas) != c.has {
				t.Errorf("the status is %+v", s)
			}
			if i := slices.IndexFunc(w.recorder, func(e string) bool { return strings.HasPrefix(e, "Warning FailedCreate") }); i < 0 {
				t.Errorf("the events are %q", w.recorder)
			}
			w.refuse = nil
			if mine, _, err := w.run(); err != nil || len(mine) != 100 || len(w.status().Conditions) != 0 {
				t.Errorf("after the quota was raised: %d pods, %v, %+v", len(mine), err, w.status().Conditions)
			}
		})
	}
}

// TestEach wants each number done once, and no more at a time than allowed.
func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 7, atOnce, atOnce + 1, 3 * atOnce} {
		synctest.Test(t, func(t *testing.T) {
			began, done := time.Now(), make([]atomic.Int32, n)
			each(n, func(i int) {
				done[i].Add(1)
				time.Sleep(time.Second)
			})
			for i := range done {
				if done[i].Load() != 1 {
					t.Errorf("of %d, number %d was done %d times", n, i, done[i].Load())
				}
			}
			if want := time.Duration((n+atOnce-1)/atOnce) * time.Second; time.Since(began) != want {
				t.Errorf("%d took %v, want %v: at most %d at a time", n, time.Since(began), want, atOnce)
			}
		})
	}
}

// TestTerminatingNamespace wants a namespace that goes away to be no failure.
func TestTerminatingNamespace(t *testing.T) {
	w := newWorld(t, set(3))
	w.refuse = func(int) error {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("namespace is going away"))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return err
	}
	if _, _, err := w.run(); err != nil || w.creates != 1 || len(w.status().Conditions) != 0 {
		t.Errorf("%d creates, %v, %+v", w.creates, err, w.status().Conditions)
	}
}

// TestMinReadySeconds wants a ready pod to be available when its time has
// come, and the reconcile to come back just then.
func TestMinReadySeconds(t *testing.T) {
	w := newWorld(t, set(3, func(rs *appsv1.ReplicaSet) { rs.Spec.MinReadySeconds = 60 }),
		pod("long", owned, readyFor(time.Hour)), pod("soon", owned, readyFor(20*time.Second)), pod("later", owned, readyFor(5*time.Second)))
	_, result, err := w.run()
	if s := w.status(); err != nil || s.ReadyReplicas != 3 || s.AvailableReplicas != 1 {
		t.Errorf("%v, status %+v", err, s)
	}
	if d := result.RequeueAfter; d > 40*time.Second || d < 35*time.Second {
		t.Errorf("it comes back after %s, want 40s", d)
	}
}

// TestStatus wants every count.
func TestStatus(t *testing.T) {
	w := newWorld(t, set(4, func(rs *appsv1.ReplicaSet) {
		rs.Spec.Template.Labels = map[string]string{"app": "web", "v": "2"}
		rs.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	}),
		pod("a", owned, readyFor(time.Minute)), pod("b", owned), pod("c", owned, phase(corev1.PodPending)),
		pod("d", owned, func(p *corev1.Pod) { p.Labels["v"] = "2" }), pod("e", owned, leaving), pod("f", owned, phase(corev1.PodFailed)))
	if _, _, err := w.run(); err != nil {
		t.Fatal(err)
	}
	s := w.status()
	if s.Replicas != 4 || s.FullyLabeledReplicas != 1 || s.ReadyReplicas != 1 || s.AvailableReplicas != 1 || *s.TerminatingReplicas != 1 || s.ObservedGeneration != 4 {
		t.Errorf("the status is %+v, terminating %d", s, *s.TerminatingReplicas)
	}
}

// TestRank wants the documented order, rule by rule: the first pod goes.
func TestRank(t *testing.T) {
	hourAgo := metav1.NewTime(time.Now().Add(-time.Hour))
	running := func(p *corev1.Pod) {
		readyFor(time.Hour)(p)
		p.CreationTimestamp, p.Status.Conditions[0].LastTransitionTime = hourAgo, hourAgo
	}
	cost := func(c string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: c} }
	}
	sidecar := func(n int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			running(p)
			p.Spec.InitContainers = []corev1.Container{{Name: "s", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "s", RestartCount: n}}
		}
	}
	for name, c := range map[string]struct{ goes, stays func(*corev1.Pod) }{
		"unassigned":               {func(p *corev1.Pod) { p.Spec.NodeName = "" }, running},
		"unassigned first":         {func(p *corev1.Pod) { running(p); p.Spec.NodeName = "" }, func(p *corev1.Pod) { onNode(p); p.Status.Phase = corev1.PodPending }},
		"unassigned and pending":   {phase(corev1.PodPending), phase(corev1.PodRunning)},
		"unassigned and not ready": {phase(corev1.PodRunning), func(p *corev1.Pod) { running(p); p.Spec.NodeName = "" }},
		"ready about as long: by ID": {
			func(p *corev1.Pod) { running(p); readyFor(time.Hour + time.Second)(p) },
			func(p *corev1.Pod) {
				running(p)
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 3}}
			},
		},
		"more restarts of a sidecar": {sidecar(3), sidecar(1)},
		"restarts of what is no sidecar": {running, func(p *corev1.Pod) {
			running(p)
			p.Spec.InitContainers = []corev1.Container{{Name: "s"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "s", RestartCount: 9}}
		}},
		"pending":       {func(p *corev1.Pod) { onNode(p); p.Status.Phase = corev1.PodPending }, running},
		"unknown":       {func(p *corev1.Pod) { onNode(p); p.Status.Phase = corev1.PodUnknown }, running},
		"pending first": {func(p *corev1.Pod) { onNode(p); p.Status.Phase = corev1.PodPending }, func(p *corev1.Pod) { onNode(p); p.Status.Phase = corev1.PodUnknown }},
		"not ready":     {func(p *corev1.Pod) { onNode(p); p.Status.Phase = corev1.PodRunning }, running},
		"cheaper":       {func(p *corev1.Pod) { running(p); cost("-5")(p) }, running},
		"odd cost":      {running, func(p *corev1.Pod) { running(p); cost("5")(p) }},
		"younger ready": {func(p *corev1.Pod) { running(p); readyFor(time.Minute)(p) }, running},
		"more restarts": {func(p *corev1.Pod) {
			running(p)
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 3}}
		}, running},
		"created later":   {func(p *corev1.Pod) { running(p); p.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute)) }, running},
		"the same: by ID": {running, running},
	} {
		goes, stays := pod("a", c.goes), pod("b", c.stays)
		for _, pods := range [][]corev1.Pod{{*goes, *stays}, {*stays, *goes}} {
			if picked := leastWorthKeeping(pods, pods, 1); len(picked) != 1 || picked[0].Name != "a" {
				t.Errorf("%s: %s goes", name, picked[0].Name)
			}
		}
	}
	crowd := []corev1.Pod{*pod("a", running, onNode), *pod("b", running), *pod("c", running, onNode)}
	if picked := leastWorthKeeping(crowd, crowd, 1); picked[0].Name == "b" {
		t.Error("the pod that is alone on its node goes")
	}
	if leastWorthKeeping(crowd, crowd, 0) != nil || len(leastWorthKeeping(crowd, crowd, 9)) != 3 {
		t.Error("the wrong number goes")
	}
}

// TestReadySinceNobodyKnowsWhen wants such a pod never to be available under
// minReadySeconds.
func TestReadySinceNobodyKnowsWhen(t *testing.T) {
	for seconds, want := range map[int32]int32{0: 1, 1: 0} {
		w := newWorld(t, set(1, func(rs *appsv1.ReplicaSet) { rs.Spec.MinReadySeconds = seconds }), pod("p", owned, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}))
		_, result, err := w.run()
		if s := w.status(); err != nil || s.ReadyReplicas != 1 || s.AvailableReplicas != want || result.RequeueAfter != 0 {
			t.Errorf("minReadySeconds %d: %v, %+v, status %+v", seconds, err, result, s)
		}
	}
}

// TestCrowdNeedsAnOwner wants nobody to be crowded in a set that no Deployment
// controls: so it is with Kubernetes' own controller.
func TestCrowdNeedsAnOwner(t *testing.T) {
	at := func(node string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { readyFor(time.Hour)(p); p.Spec.NodeName = node }
	}
	w := newWorld(t, set(2), pod("x", owned, at("crowded")), pod("y", owned, at("crowded")), pod("a", owned, readyFor(time.Minute), func(p *corev1.Pod) { p.Spec.NodeName = "free" }))
	if left, _, err := w.run(); err != nil || !slices.Equal(left, []string{"x", "y"}) {
		t.Errorf("%v stay, %v, want the two that have been ready for longer", left, err)
	}
}

// TestSiblings wants the pods of a Deployment's other ReplicaSet to count for
// who is crowded.
func TestSiblings(t *testing.T) {
	deployment := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "d-uid", Controller: ptr.To(true)}}
	mine := set(1, func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = deployment })
	other := set(1, func(rs *appsv1.ReplicaSet) { rs.Name, rs.UID, rs.OwnerReferences = "old", "old-uid", deployment })
	at := func(node string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { readyFor(time.Hour)(p); p.Spec.NodeName = node }
	}
	w := newWorld(t, mine, other, pod("x", ownedBy("old-uid"), at("crowded")), pod("y", owned, at("crowded")), pod("a", owned, at("free")))
	if left, _, err := w.run(); err != nil || !slices.Equal(left, []string{"a"}) {
		t.Errorf("%v stay, %v, want the one that is alone on its node", left, err)
	}
}

// TestBadSelector wants a selector that cannot be read to be terminal.
func TestBadSelector(t *testing.T) {
	w := newWorld(t, set(1, func(rs *appsv1.ReplicaSet) {
		rs.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Odd"}}}
	}))
	if _, _, err := w.run(); !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("the error is %v", err)
	}
}

// TestAdopters wants an orphan to wake every set that could adopt it.
func TestAdopters(t *testing.T) {
	w := newWorld(t, set(1), set(1, func(rs *appsv1.ReplicaSet) { rs.Name = "twin" }), set(1, func(rs *appsv1.ReplicaSet) {
		rs.Name, rs.Spec.Selector = "other", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	}))
	var names []string
	for _, req := range w.adopters(t.Context(), pod("o")) {
		names = append(names, req.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"twin", "web"}) || w.adopters(t.Context(), pod("o", owned)) != nil || w.adopters(t.Context(), pod("o", leaving)) != nil {
		t.Errorf("the adopters are %v", names)
	}
}

func TestRequireReadYourWrites(t *testing.T) {
	off := ctrl.Options{Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(false)}}}
	on := ctrl.Options{Client: client.Options{Cache: &client.CacheOptions{}}}
	if RequireReadYourWrites(off) == nil || RequireReadYourWrites(on) != nil || RequireReadYourWrites(ctrl.Options{}) != nil {
		t.Error("it refuses the wrong options")
	}
}
