// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package informertest_test

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/wherry-dev/wherry/cache/informertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ExampleFakeInformers() {
	ctx := context.Background()
	fake := &informertest.FakeInformers{}
	informer, err := fake.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { fmt.Println("added", obj.(*corev1.Pod).Name) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	byHand, err := fake.FakeInformerFor(ctx, &corev1.Pod{})
	if err != nil {
		fmt.Println(err)
		return
	}
	byHand.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	// Output: added p
}

func TestErrorIsReturned(t *testing.T) {
	fake := &informertest.FakeInformers{Error: fmt.Errorf("boom")}
	if _, err := fake.GetInformer(t.Context(), &corev1.Pod{}); err == nil {
		t.Fatal("no error")
	}
	if err := fake.Get(t.Context(), struct{ Namespace, Name string }{}, &corev1.Pod{}); err == nil {
		t.Fatal("no error")
	}
	fake.Error = nil
	if !fake.WaitForCacheSync(t.Context()) {
		t.Fatal("not synced")
	}
	no := false
	fake.Synced = &no
	if fake.WaitForCacheSync(t.Context()) {
		t.Fatal("synced")
	}
}
