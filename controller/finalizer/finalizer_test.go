// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package finalizer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherry-dev/wherry/client"
)

type finalize func(context.Context, client.Object) (Result, error)

func (f finalize) Finalize(ctx context.Context, obj client.Object) (Result, error) {
	return f(ctx, obj)
}

// TestFinalize wants keys to be added to living objects, and finalizers to run
// in the order of registration on dying ones (upstream: in random order).
func TestFinalize(t *testing.T) {
	boom := errors.New("boom")
	var ran []string
	all := NewFinalizers()
	register := func(key string, r Result, err error) {
		t.Helper()
		if err := all.Register(key, finalize(func(context.Context, client.Object) (Result, error) {
			ran = append(ran, key)
			return r, err
		})); err != nil {
			t.Fatal(err)
		}
	}
	order := []string{"c", "a", "b", "z", "y"}
	for _, key := range order {
		register(key, Result{StatusUpdated: key == "a"}, map[bool]error{true: boom}[key == "b"])
	}
	if all.Register("a", finalize(nil)) == nil || all.Register("again", nil) == nil || all.Register("a", finalize(func(context.Context, client.Object) (Result, error) { return Result{}, nil })) == nil {
		t.Error("a nil or a second finalizer is registered")
	}

	p := &corev1.Pod{}
	r, err := all.Finalize(t.Context(), p)
	if err != nil || r != (Result{Updated: true}) || !slices.Equal(p.Finalizers, order) || len(ran) != 0 {
		t.Errorf("alive: %+v, %v, %v, ran %v", r, err, p.Finalizers, ran)
	}
	if r, err := all.Finalize(t.Context(), p); err != nil || r != (Result{}) {
		t.Errorf("alive, again: %+v, %v", r, err)
	}

	p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	p.Finalizers = append([]string{"foreign"}, p.Finalizers[1:]...) // c is done already
	r, err = all.Finalize(t.Context(), p)
	if !errors.Is(err, boom) || r != (Result{Updated: true, StatusUpdated: true}) {
		t.Errorf("dying: %+v, %v", r, err)
	}
	if want := []string{"a", "b", "z", "y"}; !slices.Equal(ran, want) {
		t.Errorf("dying: ran %v, want %v", ran, want)
	}
	if want := []string{"foreign", "b"}; !slices.Equal(p.Finalizers, want) {
		t.Errorf("dying: left %v, want %v", p.Finalizers, want)
	}
}
