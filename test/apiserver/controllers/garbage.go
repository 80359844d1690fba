// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

const (
	// garbagePeriod is how often the collector looks for new kinds. Kubernetes' own period is thirty seconds.
	garbagePeriod = time.Second
	// garbageSync is how long the collector waits for its informers before it begins all the same.
	garbageSync    = 30 * time.Second
	garbageWorkers = 5
)

// startGarbage removes the dependents of deleted owners.
func startGarbage(s *Set) error {
	contents, err := metadata.NewForConfig(s.config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.client.Discovery()))
	// Metadata alone, of all kinds: the collector reads nothing else, and whole objects would take their size in memory.
	kinds := metadatainformer.NewFilteredSharedInformerFactory(contents, 0, metav1.NamespaceAll, nil)
	c, err := garbagecollector.NewGarbageCollector(s.ctx, s.client, contents, mapper,
		garbagecollector.DefaultIgnoredResources(), metadataOnly{kinds}, s.started)
	if err != nil {
		return err
	}
	s.running.Go(func() { c.Run(s.ctx, garbageWorkers, garbageSync) })
	s.running.Go(func() {
		select {
		case <-s.started:
			c.Sync(s.ctx, s.client.Discovery(), garbagePeriod)
		case <-s.ctx.Done():
		}
	})
	return nil
}

// metadataOnly is an informer factory as the collector wants it.
type metadataOnly struct {
	kinds metadatainformer.SharedInformerFactory
}

func (m metadataOnly) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return m.kinds.ForResource(resource), nil
}

func (m metadataOnly) Start(stop <-chan struct{}) { m.kinds.Start(stop) }
