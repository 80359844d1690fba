// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
