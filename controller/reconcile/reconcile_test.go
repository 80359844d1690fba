// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/fake"
	"github.com/wherry-dev/wherry/client/interceptor"
)

func TestResultIsZero(t *testing.T) {
	one := 1
	var none *Result
	for _, r := range []*Result{none, {}} {
		if !r.IsZero() {
			t.Errorf("%v is not zero", r)
		}
	}
	for _, r := range []*Result{{Requeue: true}, {RequeueAfter: time.Second}, {Priority: &one}} {
		if r.IsZero() {
			t.Errorf("%v is zero", r)
		}
	}
}

func TestTerminalError(t *testing.T) {
	boom := errors.New("boom")
	err := fmt.Errorf("wrapped: %w", TerminalError(boom))
	if !errors.Is(err, TerminalError(nil)) || !errors.Is(err, boom) || errors.Is(boom, TerminalError(nil)) {
		t.Error("it is not told apart")
	}
	if err.Error() != "wrapped: terminal error: boom" || TerminalError(nil).Error() == "" {
		t.Errorf("it reads %q and %q", err, TerminalError(nil))
	}
}

type objects[object client.Object] func(context.Context, object) (Result, error)

func (f objects[object]) Reconcile(ctx context.Context, o object) (Result, error) { return f(ctx, o) }

func TestAsReconciler(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}).
		WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if key.Name == "broken" {
				return boom
			}
			return c.Get(ctx, key, obj, opts...)
		}}).Build()
	var seen []*corev1.Pod
	r := AsReconciler(c, objects[*corev1.Pod](func(_ context.Context, p *corev1.Pod) (Result, error) {
		seen = append(seen, p)
		return Result{RequeueAfter: time.Minute}, nil
	}))
	request := func(name string) Request {
		return Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: name}}
	}
	for range 2 {
		if result, err := r.Reconcile(t.Context(), request("p")); err != nil || result.RequeueAfter != time.Minute {
			t.Errorf("%v, %v", result, err)
		}
	}
	if len(seen) != 2 || seen[0].Name != "p" || seen[0] == seen[1] {
		t.Errorf("the objects are %v", seen)
	}
	if result, err := r.Reconcile(t.Context(), request("gone")); err != nil || !result.IsZero() {
		t.Errorf("an object that is gone: %v, %v", result, err)
	}
	if _, err := r.Reconcile(t.Context(), request("broken")); !errors.Is(err, boom) {
		t.Errorf("an error of the client: %v", err)
	}
	if len(seen) != 2 {
		t.Error("it was called without an object")
	}
	odd := AsReconciler(c, objects[client.Object](func(context.Context, client.Object) (Result, error) { return Result{}, nil }))
	if _, err := odd.Reconcile(t.Context(), request("p")); !errors.Is(err, TerminalError(nil)) {
		t.Errorf("an interface as type: %v", err)
	}
}
