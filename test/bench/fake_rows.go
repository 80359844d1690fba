// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	theirs "sigs.k8s.io/controller-runtime/pkg/client"
	theirfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	ours "github.com/wherry-dev/wherry/client"
	ourfake "github.com/wherry-dev/wherry/client/fake"
)

// fixtures is how many pods the fake clients hold.
const fixtures = 100

var fixture = types.NamespacedName{Namespace: "default", Name: "pod-7"}

func fixturePod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: fmt.Sprint("pod-", i), Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
}

func newOurFake(n int) ours.WithWatch {
	b := ourfake.NewClientBuilder()
	for i := range n {
		b.WithObjects(fixturePod(i))
	}
	return b.Build()
}

func newTheirFake(n int) theirs.WithWatch {
	b := theirfake.NewClientBuilder()
	for i := range n {
		b.WithObjects(fixturePod(i))
	}
	return b.Build()
}

// double is a row of calls on the fake clients. They have no target: what counts is that tests do not get slower.
func double(name string, n int, ourOp func(ours.WithWatch) error, theirOp func(theirs.WithWatch) error) row {
	return row{
		name: "fake client: " + name, n: n, targets: map[unit]float64{cpu: 0, allocs: 0},
		ours: func() (work, error) {
			c := newOurFake(fixtures)
			return func(n int) error { return times(n, func() error { return ourOp(c) }) }, nil
		},
		theirs: func() (work, error) {
			c := newTheirFake(fixtures)
			return func(n int) error { return times(n, func() error { return theirOp(c) }) }, nil
		},
	}
}

func fakeRows() []row {
	ctx := context.Background()
	label := []byte(`{"metadata":{"labels":{"x":"y"}}}`)
	return []row{
		double("Get typed", 1000,
			func(c ours.WithWatch) error { return c.Get(ctx, fixture, &corev1.Pod{}) },
			func(c theirs.WithWatch) error { return c.Get(ctx, fixture, &corev1.Pod{}) }),
		double("List 100 typed", 20,
			func(c ours.WithWatch) error { return c.List(ctx, &corev1.PodList{}) },
			func(c theirs.WithWatch) error { return c.List(ctx, &corev1.PodList{}) }),
		double("Update typed", 50,
			func(c ours.WithWatch) error {
				p := &corev1.Pod{}
				if err := c.Get(ctx, fixture, p); err != nil {
					return err
				}
				return c.Update(ctx, p)
			},
			func(c theirs.WithWatch) error {
				p := &corev1.Pod{}
				if err := c.Get(ctx, fixture, p); err != nil {
					return err
				}
				return c.Update(ctx, p)
			}),
		double("Patch merge", 50,
			func(c ours.WithWatch) error {
				return c.Patch(ctx, fixturePod(7), ours.RawPatch(types.MergePatchType, label))
			},
			func(c theirs.WithWatch) error {
				return c.Patch(ctx, fixturePod(7), theirs.RawPatch(types.MergePatchType, label))
			}),
		double("make one with 10 objects", 20,
			func(ours.WithWatch) error { newOurFake(10); return nil },
			func(theirs.WithWatch) error { newTheirFake(10); return nil }),
	}
}
