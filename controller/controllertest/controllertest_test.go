// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/controller/reconcile"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
}

// TestFakeInformer wants handlers to hear of everything, a late one of what is
// there, and a removed one of nothing.
func TestFakeInformer(t *testing.T) {
	f := &FakeInformer{}
	var heard []string
	listen := func(who string) toolscache.ResourceEventHandlerRegistration {
		name := func(obj any) string { return obj.(metav1.Object).GetName() }
		r, err := f.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, initial bool) {
				heard = append(heard, fmt.Sprintf("%s add %s %t", who, name(obj), initial))
			},
			UpdateFunc: func(_, obj any) { heard = append(heard, fmt.Sprintf("%s update %s", who, name(obj))) },
			DeleteFunc: func(obj any) { heard = append(heard, fmt.Sprintf("%s delete %s", who, name(obj))) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := listen("first")
	f.Add(pod("p"))
	late := listen("late")
	f.Update(pod("p"), pod("p"))
	if err := f.RemoveEventHandler(first); err != nil || f.Handlers() != 1 {
		t.Errorf("%d handlers are left, %v", f.Handlers(), err)
	}
	f.Delete(pod("p"))
	want := []string{"first add p false", "late add p true", "first update p", "late update p", "late delete p"}
	if !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
	if f.HasSynced() || late.HasSynced() || toolscache.IsDone(late.HasSyncedChecker()) {
		t.Error("it is synced")
	}
	f.Synced()
	f.Synced()
	if !f.HasSynced() || !late.HasSynced() || !toolscache.IsDone(late.HasSyncedChecker()) || !NewFakeInformer(Synced).HasSynced() {
		t.Error("it is not synced")
	}
	f.Run(nil)
	f.RunWithContext(t.Context())
	if f.RunCount != 2 || len(f.GetStore().List()) != 0 {
		t.Errorf("it ran %d times and holds %v", f.RunCount, f.GetStore().List())
	}
}

func TestQueue(t *testing.T) {
	q := &Queue{TypedInterface: workqueue.NewTyped[reconcile.Request]()}
	defer q.ShutDown()
	q.AddAfter(reconcile.Request{}, 1<<62)
	q.AddRateLimited(reconcile.Request{})
	q.Forget(reconcile.Request{})
	if q.Len() != 1 || len(q.AddedRatelimited) != 1 || q.NumRequeues(reconcile.Request{}) != 0 {
		t.Errorf("%d are queued and %d noted", q.Len(), len(q.AddedRatelimited))
	}
}

func TestCopies(t *testing.T) {
	list := &UnconventionalListTypeList{Items: []*UnconventionalListType{{Spec: "one", ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}}}
	out := list.DeepCopyObject().(*UnconventionalListTypeList)
	out.Items[0].Labels["a"], out.Items[0].Spec = "c", "two"
	if list.Items[0].Labels["a"] != "b" || list.Items[0].Spec != "one" {
		t.Error("the copy shares memory with the original")
	}
	var none *UnconventionalListType
	if none.DeepCopy() != nil || (ErrorType{}).GetObjectKind() != nil || (ErrorType{}).DeepCopyObject() != nil {
		t.Error("something came of nothing")
	}
}
