// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/client"
)

// A cache of two namespaces that keeps only the ConfigMaps of one application and drops managedFields.
func ExampleNew() {
	c, err := cache.New(&rest.Config{Host: "https://cluster.example.com"}, cache.Options{
		DefaultNamespaces: map[string]cache.Config{"team-a": {}, "team-b": {}},
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"app": "web"})},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// A cache is empty, and says so, until it is started.
	err = c.Get(context.Background(), client.ObjectKey{Namespace: "team-a", Name: "settings"}, &corev1.ConfigMap{})
	fmt.Println(errors.As(err, new(*cache.ErrCacheNotStarted)))
	// Output: true
}

// What is kept of each kind is settled when the cache is made.
func ExampleOptions() {
	secrets := fields.OneTermEqualSelector("type", string(corev1.SecretTypeTLS))
	_, err := cache.New(&rest.Config{Host: "https://cluster.example.com"}, cache.Options{
		ReaderFailOnMissingInformer: true, // a read never begins a watch by accident
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Field: secrets},
		},
	})
	fmt.Println(err)
	// Output: <nil>
}

// The informer is there at once, and filled some time after the cache has started.
func ExampleBlockUntilSynced() {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	c, err := cache.New(&rest.Config{Host: "https://cluster.example.com"}, cache.Options{Mapper: mapper})
	if err != nil {
		fmt.Println(err)
		return
	}
	informer, err := c.GetInformer(context.Background(), &corev1.Pod{}, cache.BlockUntilSynced(false))
	fmt.Println(informer.HasSynced(), err)
	// Output: false <nil>
}

func ExampleInformerGetOptions() {
	var o cache.InformerGetOptions
	cache.BlockUntilSynced(false)(&o)
	fmt.Println(*o.BlockUntilSynced)
	// Output: false
}

func ExampleTransformStripManagedFields() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}}
	kept, err := cache.TransformStripManagedFields()(pod)
	fmt.Println(kept.(*corev1.Pod).Name, len(kept.(*corev1.Pod).ManagedFields), err)
	// Output: web 0 <nil>
}
