// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	ctrl "github.com/wherry-dev/wherry"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// lists makes a predicate that lets all pass after it has read a kind.
func lists(t *testing.T, c client.Reader, list client.ObjectList) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(client.Object) bool {
		if err := c.List(context.Background(), list.DeepCopyObject().(client.ObjectList)); err != nil {
			t.Error(err)
		}
		return true
	})
}

// TestUserFunctionsThatRead has two predicates that read each other's kind, which nothing has cached before, a map
// function that lists its own kind, and a handler that never returns: all sources sync, and all keys come.
func TestUserFunctionsThatRead(t *testing.T) {
	mgr := newManager(t)
	c, ctx := mgr.GetClient(), t.Context()
	live, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	name := func(prefix string, i int) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%02d", prefix, i)}
	}
	const before, after = 20, 10 // objects that are there first, and that come later
	create := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			for _, obj := range []client.Object{
				&corev1.Secret{ObjectMeta: name("read", i)}, &corev1.ServiceAccount{ObjectMeta: name("read", i)}, &corev1.LimitRange{ObjectMeta: name("read", i)},
			} {
				passing(t, live, obj)
			}
		}
	}
	create(0, before)

	var secrets, accounts, own seen
	free := make(chan struct{})
	defer close(free)
	ownKind := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		var list corev1.LimitRangeList
		if err := c.List(ctx, &list, client.InNamespace(obj.GetNamespace())); err != nil {
			t.Error(err)
		}
		return []reconcile.Request{named(obj.GetName())}
	})
	for name, build := range map[string]func(*ctrl.Builder) error{
		"secrets": func(b *ctrl.Builder) error {
			return b.For(&corev1.Secret{}, builder.WithPredicates(lists(t, c, &corev1.ServiceAccountList{}))).Complete(&secrets)
		},
		"accounts": func(b *ctrl.Builder) error {
			return b.For(&corev1.ServiceAccount{}, builder.WithPredicates(lists(t, c, &corev1.SecretList{}))).Complete(&accounts)
		},
		"own": func(b *ctrl.Builder) error {
			return b.Watches(&corev1.LimitRange{}, ownKind).Complete(&own)
		},
	} {
		if err := build(ctrl.NewControllerManagedBy(mgr).Named("reading-" + name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	informer, err := mgr.GetCache().GetInformer(ctx, &corev1.Secret{})
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-free }})
	}
	if err != nil {
		t.Fatal(err)
	}
	begin(t, mgr)
	secrets.want(t, "a predicate that lists the other kind", name("read", 0).Name)
	create(before, before+after)
	for i := range before + after {
		for what, s := range map[string]*seen{"a predicate that lists accounts": &secrets, "a predicate that lists secrets": &accounts, "a map function that lists its kind": &own} {
			s.want(t, what, name("read", i).Name)
		}
	}
}
