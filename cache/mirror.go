// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
)

// mirror fills the part from an informer that the program made (Options.NewInformer) instead of from a
// Reflector, until ctx is done. The informer decides what there is; reads, indexes and handlers are the
// cache's own, over the same objects.
func (p *part) mirror(ctx context.Context) {
	e := p.set.entry
	informer := e.cache.newInformer(p.source, p.source.item(), e.cache.spread(p.scope.syncPeriod), toolscache.Indexers{})
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
		e.attemptFailed(p, err)
		e.watchError(ctx, r, err)
	})
	if err != nil {
		e.cache.log.V(1).Info("The program's informer reports no errors", "kind", e.gvk.String(), "reason", err.Error())
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { p.mirrored(p.put(obj, initial)) },
		UpdateFunc: func(_, obj any) { p.mirrored(p.put(obj, false)) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			p.mirrored(p.Delete(obj))
		},
	})
	if err != nil {
		e.attemptFailed(p, err)
		return
	}
	var running = make(chan struct{})
	go func() {
		defer close(running)
		informer.RunWithContext(ctx)
	}()
	defer func() { <-running }()
	select {
	case <-ctx.Done():
		return
	case <-registration.HasSyncedChecker().Done():
	}
	e.deliverMu.Lock()
	p.set.wasFilled(p)
	e.deliverMu.Unlock()
	<-ctx.Done()
}

// mirrored reports an object that could not be stored, as a Reflector would.
func (p *part) mirrored(err error) {
	if err != nil {
		p.set.entry.attemptFailed(p, err)
		p.set.entry.cache.log.Error(err, "An object can not be cached")
	}
}
