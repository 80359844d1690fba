// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	theirs "sigs.k8s.io/controller-runtime/pkg/client"

	ours "github.com/wherry-dev/wherry/client"
)

// listed is how many pods a list has.
const listed = 500

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// clients are both libraries' clients on the same canned answers.
type clients struct {
	ours   ours.Client
	theirs theirs.Client
}

func newClients() (*clients, error) {
	server, err := newCanned(listed)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{podKind.GroupVersion()})
	mapper.Add(podKind, meta.RESTScopeNamespace)
	c := &clients{}
	if c.ours, err = ours.New(server.config(), ours.Options{Scheme: scheme, Mapper: mapper}); err != nil {
		return nil, err
	}
	c.theirs, err = theirs.New(server.config(), theirs.Options{Scheme: scheme, Mapper: mapper})
	return c, err
}

// live is a row of requests that reach the (canned) server.
func live(name string, n int, ourOp func(context.Context, ours.Client) error, theirOp func(context.Context, theirs.Client) error) row {
	const target = 0.7
	return row{
		name: "client live: " + name, n: n, targets: map[unit]float64{cpu: target, allocs: target, bytes: 0},
		ours: func() (work, error) {
			c, err := newClients()
			return func(n int) error { return times(n, func() error { return ourOp(context.Background(), c.ours) }) }, err
		},
		theirs: func() (work, error) {
			c, err := newClients()
			return func(n int) error { return times(n, func() error { return theirOp(context.Background(), c.theirs) }) }, err
		},
	}
}

func times(n int, do func() error) error {
	for range n {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func clientRows() []row {
	key := types.NamespacedName{Namespace: "team-00", Name: "web-00000"}
	unstructuredPod := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(podKind)
		return u
	}
	return []row{
		live("Get typed (protobuf)", 2000,
			func(ctx context.Context, c ours.Client) error { return c.Get(ctx, key, &corev1.Pod{}) },
			func(ctx context.Context, c theirs.Client) error { return c.Get(ctx, key, &corev1.Pod{}) }),
		live("Get unstructured (JSON)", 500,
			func(ctx context.Context, c ours.Client) error { return c.Get(ctx, key, unstructuredPod()) },
			func(ctx context.Context, c theirs.Client) error { return c.Get(ctx, key, unstructuredPod()) }),
		live("List 500 typed (protobuf)", 10,
			func(ctx context.Context, c ours.Client) error { return c.List(ctx, &corev1.PodList{}) },
			func(ctx context.Context, c theirs.Client) error { return c.List(ctx, &corev1.PodList{}) }),
		live("Update typed (protobuf)", 2000,
			func(ctx context.Context, c ours.Client) error { return c.Update(ctx, referencePod(0)) },
			func(ctx context.Context, c theirs.Client) error { return c.Update(ctx, referencePod(0)) }),
		live("Patch MergeFrom", 500,
			func(ctx context.Context, c ours.Client) error {
				before := referencePod(0)
				after := before.DeepCopy()
				after.Labels["patched"] = "yes"
				return c.Patch(ctx, after, ours.MergeFrom(before))
			},
			func(ctx context.Context, c theirs.Client) error {
				before := referencePod(0)
				after := before.DeepCopy()
				after.Labels["patched"] = "yes"
				return c.Patch(ctx, after, theirs.MergeFrom(before))
			}),
	}
}
