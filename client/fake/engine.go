// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherry-dev/wherry/client"
)

// engine is what stands behind the clients: the objects and the rules of writing to them. All rules of one write are applied
// under one lock, so that it happens as a whole or not at all.
type engine struct {
	*kinds
	behaviour    Behaviour
	showManagers bool // managedFields are part of what is read
	managers     *managers
	watches      watches

	mu       sync.RWMutex
	rows     rows     // guarded by mu
	versions versions // guarded by mu
}

// write is one write to one object, as the verbs hand it to the engine.
type write struct {
	k           *kind
	key         types.NamespacedName
	subresource string
	manager     string
	dryRun      bool
	settled     bool // the object handed over has its managedFields already
	patch       bool // the object was made from the stored one, so what it says of identity is a wish to change that
	unmanaged   bool // the write leaves managedFields as they are
}

// get gives the stored object, which must not be changed.
func (e *engine) get(k *kind, key types.NamespacedName) (client.Object, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	r, err := e.rows.get(k, key)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, k.notFound(key.Name)
	}
	return e.visible(r.obj), nil
}

// visible gives obj as readers see it. The result may be obj itself.
func (e *engine) visible(obj client.Object) client.Object {
	if e.showManagers || obj.GetManagedFields() == nil {
		return obj
	}
	shown := obj.DeepCopyObject().(client.Object)
	shown.SetManagedFields(nil)
	return shown
}

// commit stores what a write has made of old, which is nil for a new object, and tells the watches. A dry run stores
// nothing. The lock is held.
func (e *engine) commit(w *write, old *record, next client.Object) (client.Object, error) {
	r := &record{obj: next}
	if err := e.manage(w, old, r); err != nil {
		return nil, err
	}
	if old != nil && e.behaviour.has(NoOpWrites) {
		if same, err := e.changesNothing(w.k, old, r); same || err != nil {
			return e.visible(old.obj), err
		}
	}
	if w.dryRun {
		if old == nil {
			next.SetResourceVersion("")
		}
		return e.visible(r.obj), nil
	}
	var oldObj client.Object
	event := watch.Added
	if old != nil {
		oldObj, event = old.obj, watch.Modified
	}
	r.obj.SetResourceVersion(e.versions.next(oldObj))
	if err := e.rows.put(w.k, w.key, r, old); err != nil {
		return nil, err
	}
	e.watches.tell(w.k, change{event, oldObj, e.visible(r.obj)})
	return e.visible(r.obj), nil
}

// manage notes what the write means for managedFields.
func (e *engine) manage(w *write, old *record, r *record) error {
	if w.settled {
		return nil
	}
	p := pendingWrite{manager: cmp.Or(w.manager, unknownManager), subresource: w.subresource, after: r.obj}
	if old != nil {
		p.before = old.obj
		r.pending = slices.Clone(old.pending)
	}
	if !w.unmanaged {
		r.pending = append(r.pending, p)
	}
	if e.showManagers || len(r.pending) > maxPending {
		return e.managers.settle(w.k, r)
	}
	return nil
}

// changesNothing reports whether r is what old is already. The managed fields are worked out only if nothing else differs.
func (e *engine) changesNothing(k *kind, old, r *record) (bool, error) {
	if !sameContent(old.obj, r.obj, false) {
		return false, nil
	}
	for _, each := range []*record{old, r} {
		if err := e.managers.settle(k, each); err != nil {
			return false, err
		}
	}
	return sameContent(old.obj, r.obj, true), nil
}

// drop takes an object out for good. last is what the caller is answered; those who watch are told what was stored, at a
// version of its own. The lock is held.
func (e *engine) drop(w *write, old *record, last client.Object) (client.Object, error) {
	if w.dryRun {
		return e.visible(last), nil
	}
	gone := old.obj.DeepCopyObject().(client.Object)
	if e.versions.global {
		gone.SetResourceVersion(e.versions.next(old.obj))
	} else {
		gone.SetResourceVersion(last.GetResourceVersion())
	}
	if err := e.rows.remove(w.k, w.key, gone); err != nil {
		return nil, err
	}
	e.watches.tell(w.k, change{watch.Deleted, old.obj, e.visible(gone)})
	return e.visible(last), e.leave(w.key.Namespace)
}

// now gives the time as the API writes it.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

// alive gives ctx's error. A nil context, which some tests pass, never ends.
func alive(ctx context.Context) error {
	if ctx == nil {
		return nil
	}
	return ctx.Err()
}
