// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package builder_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/cache/informertest"
	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/builder"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/predicate"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/manager"
	"github.com/wherry-dev/wherry/manager/metrics/server"
	"github.com/wherry-dev/wherry/webhook/admission"
)

// offline makes a manager without a cluster: what happens there is told to the cache by hand.
func offline() (manager.Manager, *informertest.FakeInformers) {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	informers := &informertest.FakeInformers{Scheme: scheme}
	mgr, err := manager.New(&rest.Config{Host: "https://cluster.example.com"}, manager.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return informers, nil },
	})
	if err != nil {
		panic(err)
	}
	return mgr, informers
}

// happen tells the cache of an object.
func happen(informers *informertest.FakeInformers, obj client.Object) {
	informer, err := informers.FakeInformerFor(context.Background(), obj)
	if err != nil {
		panic(err)
	}
	informer.Add(obj)
}

// A controller of ConfigMaps runs for each one that is labelled, and for the owner of each Pod.
func ExampleControllerManagedBy() {
	mgr, informers := offline()
	ctx, stop := context.WithCancel(context.Background())
	labelled := predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()["managed"] == "yes" })
	seen := map[string]bool{}
	err := builder.ControllerManagedBy(mgr).
		For(&corev1.ConfigMap{}, builder.WithPredicates(labelled)).
		Owns(&corev1.Pod{}).
		Complete(reconcile.Func(func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
			if seen[req.Name] = true; len(seen) == 2 {
				fmt.Println(seen)
				stop()
			}
			return reconcile.Result{}, nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	controls := true
	happen(informers, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "skipped"}})
	happen(informers, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine", Labels: map[string]string{"managed": "yes"}}})
	happen(informers, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", Controller: &controls},
	}}})
	fmt.Println(mgr.Start(ctx))
	// Output:
	// map[mine:true owner:true]
	// <nil>
}

// Keys may be of any type that can be compared: here, one key for each node.
func ExampleTypedControllerManagedBy() {
	mgr, informers := offline()
	ctx, stop := context.WithCancel(context.Background())
	toNode := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []string {
		return []string{obj.(*corev1.Pod).Spec.NodeName}
	})
	err := builder.TypedControllerManagedBy[string](mgr).Named("nodes").
		Watches(&corev1.Pod{}, toNode).
		Complete(reconcile.TypedFunc[string](func(_ context.Context, node string) (reconcile.Result, error) {
			fmt.Println("reconcile node", node)
			stop()
			return reconcile.Result{}, nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"a", "b"} {
		happen(informers, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{NodeName: "node-1"}})
	}
	fmt.Println(mgr.Start(ctx))
	// Output:
	// reconcile node node-1
	// <nil>
}

// The predicates of one watch hold for that watch alone; those of WithEventFilter for all.
func ExampleWithPredicates() {
	mgr, _ := offline()
	nop := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })
	err := builder.ControllerManagedBy(mgr).
		WithEventFilter(predicate.ResourceVersionChangedPredicate{}).
		For(&corev1.ConfigMap{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Pod{}, builder.OnlyMetadata, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Complete(nop)
	fmt.Println(err)
	// Output: <nil>
}

// blue colours ConfigMaps that have no colour.
type blue struct{}

func (blue) Default(_ context.Context, m *corev1.ConfigMap) error {
	if m.Data["color"] == "" {
		m.Data = map[string]string{"color": "blue"}
	}
	return nil
}

var _ admission.Defaulter[*corev1.ConfigMap] = blue{}

func ExampleWebhookManagedBy() {
	mgr, _ := offline()
	fmt.Println(builder.WebhookManagedBy(mgr, &corev1.ConfigMap{}).WithDefaulter(blue{}).Complete())
	_, pattern := mgr.GetWebhookServer().WebhookMux().Handler(&http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/mutate--v1-configmap"}})
	fmt.Println(pattern)
	// Output:
	// <nil>
	// /mutate--v1-configmap
}
