// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

const (
	// namespaceDelay is how long a namespace must have been terminating before it is emptied: requests that were let in
	// a moment earlier have left their objects by then. Kubernetes' own controller waits five seconds, for clusters
	// whose servers do not see each other's writes at once; this is one server.
	namespaceDelay = 50 * time.Millisecond
	// The delays between attempts on a namespace that is not empty yet: finalizers take as long as they take.
	namespaceRetryFirst = 20 * time.Millisecond
	namespaceRetryMost  = time.Second

	namespaceWorkers = 4
)

// startNamespaces empties and removes terminating namespaces.
func startNamespaces(s *Set) error {
	contents, err := metadata.NewForConfig(s.config)
	if err != nil {
		return err
	}
	discover, err := s.namespaced()
	if err != nil {
		return err
	}
	deleter := deletion.NewNamespacedResourcesDeleter(s.ctx, s.client.CoreV1().Namespaces(), contents, s.client.CoreV1(),
		discover, core.FinalizerKubernetes)
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](namespaceRetryFirst, namespaceRetryMost))
	terminating := func(object any) {
		if n, ok := object.(*core.Namespace); ok && n.DeletionTimestamp != nil {
			queue.AddAfter(n.Name, namespaceDelay)
		}
	}
	if _, err := s.shared.Core().V1().Namespaces().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    terminating,
		UpdateFunc: func(_, object any) { terminating(object) },
	}); err != nil {
		return err
	}
	s.running.Go(func() {
		<-s.ctx.Done()
		queue.ShutDown()
	})
	for range namespaceWorkers {
		s.running.Go(func() {
			for {
				name, quit := queue.Get()
				if quit {
					return
				}
				// An error means that something is left, or that a request failed: the remedy is the same.
				if err := deleter.Delete(s.ctx, name); err != nil && s.ctx.Err() == nil {
					queue.AddRateLimited(name)
				} else {
					queue.Forget(name)
				}
				queue.Done(name)
			}
		})
	}
	return nil
}

// namespaced asks which kinds are in namespaces, and returns a function that gives this answer the first time and asks
// anew then. The deleter asks as soon as it is made, and ends the process if it hears of no kind.
func (s *Set) namespaced() (func() ([]*meta.APIResourceList, error), error) {
	ask := s.client.Discovery().ServerPreferredNamespacedResources
	first, err := ask()
	if len(first) == 0 {
		return nil, errors.Join(errors.New("the server names no kinds that are in namespaces"), err)
	}
	return func() ([]*meta.APIResourceList, error) {
		if answer := first; answer != nil {
			first = nil // who makes the deleter is the first to ask, before there is anybody else
			return answer, nil
		}
		return ask()
	}, nil
}
