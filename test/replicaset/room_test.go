// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package replicaset_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/wherry-dev/wherry/client"
)

// room is where one case happens: a namespace of its own on a server with one of the two controllers.
type room struct {
	*testing.T
	namespace string
	live      client.Client
	counted   *tally // what the controller sends
	witness   string // the namespace of a set that tells how far the controller sees
	unseen    bool   // whether pods were made that the controller may not have seen
}

// newRoom makes a namespace in which pods can be created, and ends what is left in it with the test.
func newRoom(t *testing.T, namespace, witness string, live client.Client, counted *tally) *room {
	t.Helper()
	r := &room{T: t, namespace: namespace, live: live, counted: counted, witness: witness}
	r.makeNamespace(namespace)
	t.Cleanup(func() {
		// Without sets no controller has work here, not even the other one, later.
		if err := live.DeleteAllOf(context.Background(), &appsv1.ReplicaSet{}, client.InNamespace(namespace), background); err != nil {
			t.Error(err)
		}
	})
	return r
}

// makeNamespace makes a namespace and waits for its service account: without one pods are refused.
func (r *room) makeNamespace(name string) {
	r.Helper()
	r.make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	r.eventually(func() error {
		return r.live.Get(r.Context(), client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
	})
}

// make creates an object.
func (r *room) make(obj client.Object) {
	r.Helper()
	if err := r.live.Create(r.Context(), obj); err != nil {
		r.Fatal(err)
	}
}

// app are the labels of most pods.
func app(value string) map[string]string { return map[string]string{"app": value} }

var containers = []corev1.Container{{Name: "c", Image: "example.com/c:1"}}

// set creates a ReplicaSet with n replicas and the selector app=web.
func (r *room) set(name string, n int32, change ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	r.Helper()
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(n),
			Selector: &metav1.LabelSelector{MatchLabels: app("web")},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app("web")}, Spec: corev1.PodSpec{Containers: containers}},
		},
	}
	for _, c := range change {
		c(rs)
	}
	r.catchUp()
	r.make(rs)
	return rs
}

// catchUp waits until the controller has heard of the pods made so far. It hears of sets and of pods by two streams: of a
// set it could hear first, and not find the orphans that are there.
func (r *room) catchUp() {
	r.Helper()
	if !r.unseen {
		return
	}
	r.unseen = false
	// The witness wants no pods: this one is adopted and goes, after all that came before it.
	last := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.witness, GenerateName: "last-", Labels: app("web")},
		Spec:       corev1.PodSpec{Containers: containers},
	}
	r.make(last)
	r.gone(last)
}

// settled creates a ReplicaSet and waits until it has its pods.
func (r *room) settled(name string, n int32, change ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	r.Helper()
	rs := r.set(name, n, change...)
	r.reach(rs, int(n))
	return rs
}

// pod creates a pod with the label app=web and gives it the status it has after the changes.
func (r *room) pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	r.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name, Labels: app("web")},
		Spec:       corev1.PodSpec{Containers: slices.Clone(containers)},
	}
	for _, c := range change {
		c(pod)
	}
	status := pod.Status
	r.make(pod)
	r.unseen = true
	if status.Phase != "" {
		pod.Status = status
		r.report(pod)
	}
	return pod
}

// report writes a pod's status, as a kubelet does.
func (r *room) report(pod *corev1.Pod) {
	r.Helper()
	if err := r.live.Status().Update(r.Context(), pod); err != nil {
		r.Fatal(err)
	}
}

// become changes a pod's status.
func (r *room) become(pod *corev1.Pod, change ...func(*corev1.Pod)) {
	r.Helper()
	r.get(pod)
	for _, c := range change {
		c(pod)
	}
	r.report(pod)
}

// What a pod may be.
func labelled(value string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels = app(value) } }
func on(node string) func(*corev1.Pod)        { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
func costs(n string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: n} }
}
func in(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}
func held(p *corev1.Pod) { p.Finalizers = []string{"example.com/hold"} }

// readySince is a running pod that has been ready for some time.
func readySince(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-d))}}
	}
}

func notReady(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
}

func restarted(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: n}}
	}
}

// ownedBy names an owner, as its controller or not.
func ownedBy(kind, apiVersion string, owner client.Object, isController bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(isController)})
	}
}

// merge applies a merge patch.
func (r *room) merge(obj client.Object, patch string, args ...any) {
	r.Helper()
	if err := r.live.Patch(r.Context(), obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, args...))); err != nil {
		r.Fatal(err)
	}
}

// mergeStatus applies a merge patch to the status.
func (r *room) mergeStatus(obj client.Object, patch string, args ...any) {
	r.Helper()
	if err := r.live.Status().Patch(r.Context(), obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, args...))); err != nil {
		r.Fatal(err)
	}
}

func (r *room) scale(rs *appsv1.ReplicaSet, n int) {
	r.Helper()
	r.merge(rs, `{"spec":{"replicas":%d}}`, n)
}

// get reads an object anew.
func (r *room) get(obj client.Object) {
	r.Helper()
	if err := r.live.Get(r.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		r.Fatal(err)
	}
}

// there tells whether the very object is stored and not on its way out.
func (r *room) there(obj client.Object) bool {
	r.Helper()
	now := obj.DeepCopyObject().(client.Object)
	err := r.live.Get(r.Context(), client.ObjectKeyFromObject(obj), now)
	if client.IgnoreNotFound(err) != nil {
		r.Fatal(err)
	}
	return err == nil && now.GetUID() == obj.GetUID() && now.GetDeletionTimestamp() == nil
}

// remove deletes an object.
func (r *room) remove(obj client.Object, opts ...client.DeleteOption) {
	r.Helper()
	if err := r.live.Delete(r.Context(), obj, opts...); err != nil {
		r.Fatal(err)
	}
}

// now means that a pod goes at once, node or not.
const now = client.GracePeriodSeconds(0)

// background means that the garbage collector deletes the dependents.
const background = client.PropagationPolicy(metav1.DeletePropagationBackground)

// letGo takes the finalizers off.
func (r *room) letGo(obj client.Object) {
	r.Helper()
	r.merge(obj, `{"metadata":{"finalizers":null}}`)
}

// pods are all pods of the namespace.
func (r *room) pods() []corev1.Pod {
	r.Helper()
	var list corev1.PodList
	if err := r.live.List(r.Context(), &list, client.InNamespace(r.namespace)); err != nil {
		r.Fatal(err)
	}
	return list.Items
}

// mine are the pods that rs controls and that are neither finished nor on their way out.
func (r *room) mine(rs *appsv1.ReplicaSet) []corev1.Pod {
	r.Helper()
	return slices.DeleteFunc(r.pods(), func(p corev1.Pod) bool {
		return !metav1.IsControlledBy(&p, rs) || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	})
}

func names(pods []corev1.Pod) []string {
	var all []string
	for _, p := range pods {
		all = append(all, p.Name)
	}
	slices.Sort(all)
	return all
}

// status reads rs's status.
func (r *room) status(rs *appsv1.ReplicaSet) appsv1.ReplicaSetStatus {
	r.Helper()
	r.get(rs)
	return rs.Status
}

// eventually waits until check returns nil.
func (r *room) eventually(check func() error) {
	r.Helper()
	deadline := time.Now().Add(settle)
	for err := check(); err != nil; err = check() {
		if time.Now().After(deadline) {
			r.Fatalf("after %v: %v", settle, err)
		}
		time.Sleep(look) // another process: nothing to wait on
	}
}

// steadily waits until check returns nil, and has for a while: a controller may pass through what it was before.
func (r *room) steadily(check func() error) {
	r.Helper()
	for deadline := time.Now().Add(settle); ; {
		r.eventually(check)
		var err error
		for until := time.Now().Add(stay); err == nil && time.Now().Before(until); time.Sleep(look) {
			err = check()
		}
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			r.Fatalf("reached, but not for long: %v", err)
		}
	}
}

// stays wants check to hold, and to go on holding.
func (r *room) stays(check func() error) {
	r.Helper()
	for until := time.Now().Add(stay); time.Now().Before(until); time.Sleep(look) {
		if err := check(); err != nil {
			r.Fatalf("it does not stay so: %v", err)
		}
	}
}

// reach waits until rs has n pods and says so; it may be on its way to another number.
func (r *room) reach(rs *appsv1.ReplicaSet, n int) {
	r.Helper()
	r.eventually(func() error { return r.has(rs, n) })
}

// expect waits until rs has n pods, says so, and stays so.
func (r *room) expect(rs *appsv1.ReplicaSet, n int) {
	r.Helper()
	r.steadily(func() error { return r.has(rs, n) })
}

func (r *room) has(rs *appsv1.ReplicaSet, n int) error {
	r.Helper()
	pods, status := r.mine(rs), r.status(rs)
	var errs []error
	if len(pods) != n {
		errs = append(errs, fmt.Errorf("%s has the pods %v, want %d", rs.Name, names(pods), n))
	}
	if int(status.Replicas) != n {
		errs = append(errs, fmt.Errorf("status.replicas is %d, want %d", status.Replicas, n))
	}
	if status.ObservedGeneration != rs.Generation {
		errs = append(errs, fmt.Errorf("status.observedGeneration is %d, want %d", status.ObservedGeneration, rs.Generation))
	}
	return errors.Join(errs...)
}

// keeps waits until rs has exactly the named pods.
func (r *room) keeps(rs *appsv1.ReplicaSet, want ...string) {
	r.Helper()
	slices.Sort(want)
	r.steadily(func() error {
		if got := names(r.mine(rs)); !slices.Equal(got, want) {
			return fmt.Errorf("%s has the pods %v, want %v", rs.Name, got, want)
		}
		return nil
	})
}

// untouched wants the pod to stay as it is.
func (r *room) untouched(pod *corev1.Pod) {
	r.Helper()
	r.get(pod)
	version := pod.ResourceVersion
	r.stays(func() error {
		if r.get(pod); pod.ResourceVersion != version {
			return fmt.Errorf("pod %s was changed: %+v", pod.Name, pod.ObjectMeta)
		}
		return nil
	})
}

// counts waits until the status is as wanted; a want of -1 does not care.
func (r *room) counts(rs *appsv1.ReplicaSet, replicas, labelled, ready, available, terminating int32) {
	r.Helper()
	want := []int32{replicas, labelled, ready, available, terminating}
	r.steadily(func() error {
		s := r.status(rs)
		got := []int32{s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas, ptr.Deref(s.TerminatingReplicas, 0)}
		for i := range want {
			if want[i] >= 0 && want[i] != got[i] {
				return fmt.Errorf("replicas, labelled, ready, available, terminating are %v, want %v", got, want)
			}
		}
		return nil
	})
}

// failure is the reason and the message of the ReplicaFailure condition, or two times nothing.
func (r *room) failure(rs *appsv1.ReplicaSet) (reason, message string) {
	r.Helper()
	for _, c := range r.status(rs).Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			return c.Reason, c.Message
		}
	}
	return "", ""
}

// fails waits for the ReplicaFailure condition, or for its end if reason is empty.
func (r *room) fails(rs *appsv1.ReplicaSet, reason string, says ...string) {
	r.Helper()
	r.eventually(func() error {
		got, message := r.failure(rs)
		for _, s := range says {
			if !strings.Contains(message, s) {
				return fmt.Errorf("the failure %s says %q, want %q in it", got, message, s)
			}
		}
		if got != reason || strings.Contains(message, "\n") {
			return fmt.Errorf("the failure is %q: %q, want %q in one line", got, message, reason)
		}
		return nil
	})
}

// event waits for an event about rs whose message contains a text.
func (r *room) event(rs *appsv1.ReplicaSet, eventType, reason, text string) {
	r.Helper()
	r.eventually(func() error {
		var list corev1.EventList
		if err := r.live.List(r.Context(), &list, client.InNamespace(r.namespace)); err != nil {
			return err
		}
		said := map[string]bool{}
		for _, e := range list.Items {
			if e.InvolvedObject.UID != rs.UID {
				continue
			}
			if e.Type == eventType && e.Reason == reason && strings.Contains(e.Message, text) {
				return nil
			}
			said[e.Type+" "+e.Reason+" "+e.Message] = true
		}
		return fmt.Errorf("no event %s %s %q among %q", eventType, reason, text, slices.Sorted(maps.Keys(said)))
	})
}

// sent is how many requests for a resource the controller has sent to the namespace, those that were refused or the others.
func (r *room) sent(method, resource string, refused bool) int {
	return r.counted.sum(func(c call) bool {
		return c == call{namespace: r.namespace, method: method, resource: resource, refused: refused}
	})
}

// written is how much the controller has written to the namespace, without events.
func (r *room) written() int {
	return r.counted.sum(func(c call) bool {
		return c.namespace == r.namespace && c.method != "GET" && c.resource != "events"
	})
}

// refusal tells whether an error is the server's no.
func refusal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }
