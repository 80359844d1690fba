// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/client/log"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// OwnerOption changes which owners EnqueueRequestForOwner queues.
type OwnerOption func(e enqueueRequestForOwnerInterface)

// enqueueRequestForOwnerInterface is what an OwnerOption may change, whatever
// the handler's type parameter.
type enqueueRequestForOwnerInterface interface {
	setIsController(isController bool)
}

// OnlyControllerOwner queues only the owner that is the object's controller.
func OnlyControllerOwner() OwnerOption {
	return func(e enqueueRequestForOwnerInterface) { e.setIsController(true) }
}

// EnqueueRequestForOwner queues the owners of the event's object that have the
// kind of ownerType, in any version. For an update those of the old and of the
// new object are queued.
//
// Whether owners have a namespace is asked of the mapper once. If ownerType is
// not in the scheme, the builder and Controller.Watch refuse the handler.
func EnqueueRequestForOwner(scheme *runtime.Scheme, mapper meta.RESTMapper, ownerType client.Object, opts ...OwnerOption) EventHandler {
	return TypedEnqueueRequestForOwner[client.Object](scheme, mapper, ownerType, opts...)
}

// TypedEnqueueRequestForOwner is EnqueueRequestForOwner for one type of owned
// objects.
func TypedEnqueueRequestForOwner[object client.Object](scheme *runtime.Scheme, mapper meta.RESTMapper, ownerType client.Object, opts ...OwnerOption) TypedEventHandler[object, reconcile.Request] {
	o := &ofOwner[object]{mapper: mapper}
	if apiutil.IsNil(ownerType) {
		o.invalid = fmt.Errorf("enqueue request for owner: the owner type is nil")
	} else if o.owner, o.invalid = apiutil.GVKForObject(ownerType, scheme); o.invalid != nil {
		o.invalid = fmt.Errorf("enqueue request for owner: the kind of %T: %w", ownerType, o.invalid)
	}
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// ofOwner queues owners.
type ofOwner[object client.Object] struct {
	owner        schema.GroupVersionKind
	mapper       meta.RESTMapper
	isController bool
	invalid      error // why the owner's kind is not known

	mu         sync.RWMutex
	resolved   bool // whether the scope is known
	namespaced bool
}

func (o *ofOwner[object]) setIsController(isController bool) { o.isController = isController }

func (o *ofOwner[object]) validate() error { return o.invalid }

func (o *ofOwner[object]) inline() bool { return true }

// prepare finds out the owner's scope unless it is known.
func (o *ofOwner[object]) prepare() error {
	if o.invalid != nil {
		return o.invalid
	}
	o.mu.RLock()
	resolved := o.resolved
	o.mu.RUnlock()
	if resolved {
		return nil
	}
	mapping, err := o.mapper.RESTMapping(o.owner.GroupKind(), o.owner.Version)
	if err != nil {
		return fmt.Errorf("scope of the owner kind %s: %w", o.owner.GroupKind(), err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.resolved, o.namespaced = true, mapping.Scope.Name() != meta.RESTScopeNameRoot
	return nil
}

func (o *ofOwner[object]) Create(ctx context.Context, e event.TypedCreateEvent[object], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	o.enqueue(ctx, q, e.IsInInitialList, e.Object)
}

func (o *ofOwner[object]) Update(ctx context.Context, e event.TypedUpdateEvent[object], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	o.enqueue(ctx, q, unchanged(e), e.ObjectOld, e.ObjectNew)
}

func (o *ofOwner[object]) Delete(ctx context.Context, e event.TypedDeleteEvent[object], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	o.enqueue(ctx, q, false, e.Object)
}

func (o *ofOwner[object]) Generic(ctx context.Context, e event.TypedGenericEvent[object], q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	o.enqueue(ctx, q, false, e.Object)
}

// maxOwnersSeen is up to how many owners of one event are compared to queue
// each once; the queue takes care of the rest.
const maxOwnersSeen = 4

// enqueue adds the owners of the objects, each once.
func (o *ofOwner[object]) enqueue(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], low bool, objs ...object) {
	var seen [maxOwnersSeen]reconcile.Request
	n := 0
	for _, obj := range objs {
		if apiutil.IsNil(obj) {
			continue
		}
		for _, ref := range obj.GetOwnerReferences() {
			if !o.matches(ref) {
				continue
			}
			req, ok := o.request(ctx, ref, obj.GetNamespace())
			if !ok || contains(seen[:n], req) {
				continue
			}
			if n < len(seen) {
				seen[n] = req
				n++
			}
			enqueue(q, low, req)
		}
	}
}

func contains(reqs []reconcile.Request, req reconcile.Request) bool {
	for i := range reqs {
		if reqs[i] == req {
			return true
		}
	}
	return false
}

// matches compares group and kind; an owner keeps its reference when its
// version changes.
func (o *ofOwner[object]) matches(ref metav1.OwnerReference) bool {
	if ref.Kind != o.owner.Kind || o.isController && (ref.Controller == nil || !*ref.Controller) {
		return false
	}
	group, _, found := strings.Cut(ref.APIVersion, "/")
	if !found {
		group = ""
	}
	return group == o.owner.Group
}

// request names the owner. The scope is known already unless the handler is
// used without a source of ours.
func (o *ofOwner[object]) request(ctx context.Context, ref metav1.OwnerReference, namespace string) (reconcile.Request, bool) {
	o.mu.RLock()
	resolved, namespaced := o.resolved, o.namespaced
	o.mu.RUnlock()
	if !resolved {
		if err := o.prepare(); err != nil {
			log.FromContext(ctx).Error(err, "Ignored an owner", "kind", ref.Kind, "name", ref.Name)
			return reconcile.Request{}, false
		}
		o.mu.RLock()
		namespaced = o.namespaced
		o.mu.RUnlock()
	}
	req := reconcile.Request{NamespacedName: types.NamespacedName{Name: ref.Name}}
	if namespaced {
		req.Namespace = namespace
	}
	return req, true
}
