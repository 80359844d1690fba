// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package replicaset_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
)

// eventually waits until check returns nil.
func (w *world) eventually(check func() error) {
	w.Helper()
	deadline := time.Now().Add(settle)
	for err := check(); err != nil; err = check() {
		if time.Now().After(deadline) {
			w.Fatalf("after %v: %v", settle, err)
		}
		time.Sleep(look) // another process: nothing to wait on
	}
}

// TestOrphanIsAdopted wants a pod without an owner to be taken when it comes,
// and one pod too many to go.
func TestOrphanIsAdopted(t *testing.T) {
	w := newWorld(t)
	rs := w.create("web", 2)
	w.expect(rs, 2)
	orphan := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: rs.Namespace, Name: "orphan", Labels: rs.Spec.Selector.MatchLabels,
			Annotations: map[string]string{corev1.PodDeletionCost: "100"}, // the last to go
		},
		Spec: rs.Spec.Template.Spec,
	}
	if err := w.live.Create(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		if err := w.live.Get(t.Context(), client.ObjectKeyFromObject(orphan), orphan); err != nil {
			return err
		}
		if !metav1.IsControlledBy(orphan, rs) {
			return fmt.Errorf("the orphan has the owners %v", orphan.OwnerReferences)
		}
		return nil
	})
	w.expect(rs, 2)
	if _, there := w.pods(rs)[orphan.UID]; !there {
		t.Error("the adopted pod went although its deletion costs most")
	}
}

// TestRelabelledPodIsReleased wants a pod that does not match any more to be
// let go, whole, and to be replaced.
func TestRelabelledPodIsReleased(t *testing.T) {
	w := newWorld(t)
	rs := w.create("web", 2)
	w.expect(rs, 2)
	var freed corev1.Pod
	for _, pod := range w.pods(rs) {
		freed = pod
		break
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"freed"}}}`))
	if err := w.live.Patch(t.Context(), &freed, patch); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		if err := w.live.Get(t.Context(), client.ObjectKeyFromObject(&freed), &freed); err != nil {
			return err
		}
		if len(freed.OwnerReferences) != 0 {
			return fmt.Errorf("it still has the owners %v", freed.OwnerReferences)
		}
		return nil
	})
	w.expect(rs, 2)
	if freed.DeletionTimestamp != nil || freed.Labels["app"] != "freed" {
		t.Errorf("the freed pod is %+v", freed.ObjectMeta)
	}
}

// TestRefusedPods wants pods that the server refuses to show in the condition,
// and the condition to go when they are not refused any more.
func TestRefusedPods(t *testing.T) {
	w := newWorld(t)
	rs := w.create("web", 1)
	w.expect(rs, 1)
	bad := rs.DeepCopy()
	bad.ResourceVersion, bad.UID, bad.Name = "", "", "bad"
	bad.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "bad"}}
	bad.Spec.Template.Labels = map[string]string{"app": "bad"}
	bad.Spec.Template.Spec.ServiceAccountName = "nobody" // there is none, so admission refuses the pod
	if err := w.live.Create(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		var now appsv1.ReplicaSet
		if err := w.live.Get(t.Context(), client.ObjectKeyFromObject(bad), &now); err != nil {
			return err
		}
		for _, c := range now.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue && c.Reason == "FailedCreate" {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %v", now.Status.Conditions)
	})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: bad.Namespace, Name: "nobody"}}
	if err := w.live.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	w.expect(bad, 1)
	w.eventually(func() error {
		var now appsv1.ReplicaSet
		if err := w.live.Get(t.Context(), client.ObjectKeyFromObject(bad), &now); err != nil {
			return err
		}
		if len(now.Status.Conditions) != 0 {
			return fmt.Errorf("the conditions are %v", now.Status.Conditions)
		}
		return nil
	})
}

// TestMinReadySeconds wants a ready pod to become available by itself, when
// its time has come.
func TestMinReadySeconds(t *testing.T) {
	w := newWorld(t)
	rs := w.create("web", 1)
	w.expect(rs, 1)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minReadySeconds":3}}`))
	if err := w.live.Patch(t.Context(), rs, patch); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, pod := range w.pods(rs) {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(began)}}
		if err := w.live.Status().Update(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually(func() error {
		var now appsv1.ReplicaSet
		if err := w.live.Get(t.Context(), client.ObjectKeyFromObject(rs), &now); err != nil {
			return err
		}
		if now.Status.AvailableReplicas != 1 {
			return fmt.Errorf("%d of %d ready pods are available", now.Status.AvailableReplicas, now.Status.ReadyReplicas)
		}
		return nil
	})
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("it was available after %s, want 3s (times are stored in whole seconds)", took)
	}
}

// TestEvents wants the events that kubectl describe shows.
func TestEvents(t *testing.T) {
	w := newWorld(t)
	rs := w.create("web", 1)
	w.expect(rs, 1)
	w.eventually(func() error {
		var events corev1.EventList
		if err := w.live.List(t.Context(), &events, client.InNamespace(rs.Namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.UID == rs.UID && e.Reason == "SuccessfulCreate" {
				return nil
			}
		}
		return fmt.Errorf("none of %d events tells of the created pod", len(events.Items))
	})
}
