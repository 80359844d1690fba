// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// part is one store of an entry with what fills it and what is read beside it. As a ReflectorStore it makes a
// change of the store, the overlay's step and the delivery to handlers one step.
type part struct {
	set     *set
	scope   scope
	store   *store
	overlay *overlay
	source  *source
	reader  CacheReader
	typ     reflect.Type // of what the source decodes
	tm      metav1.TypeMeta

	// state of the attempts to fill the store; guarded by entry.mu.
	filled   atomic.Bool
	attempts int           // that ended with an error
	failed   error         // the latest of them, nil once one went well
	failedAt time.Time     // when
	kick     chan struct{} // wakes the loop that waits for its next attempt
	lastRV   string        // the version of the latest list or object event; guarded by entry.deliverMu

	counts counts
}

var (
	_ toolscache.ReflectorStore         = (*part)(nil)
	_ toolscache.ReflectorBookmarkStore = (*part)(nil)
)

// transformError says that a user's transform did not give a storable object.
type transformError struct {
	kind, key string
	err       error
}

func (e *transformError) Error() string {
	return fmt.Sprintf("the transform of %s failed for %s: %v", e.kind, e.key, e.err)
}

func (e *transformError) Unwrap() error { return e.err }

// prepare makes a decoded object what is stored: transformed and with its kind written into it.
func (p *part) prepare(in any) (key string, obj runtime.Object, err error) {
	key, err = keyOf(in)
	if err != nil {
		return "", nil, err
	}
	out := in
	if p.scope.transform != nil {
		if out, err = p.scope.transform(in); err == nil && reflect.TypeOf(out) != reflect.TypeOf(in) {
			err = fmt.Errorf("it made a %T of a %T", out, in)
		}
		if err != nil {
			return key, nil, &transformError{kind: p.set.entry.gvk.String(), key: key, err: err}
		}
	}
	obj, ok := out.(runtime.Object)
	if !ok {
		return key, nil, fmt.Errorf("%T is no object", out)
	}
	stamp(obj, p.set.entry.gvk, p.tm)
	return key, obj, nil
}

// Add stores a new object.
func (p *part) Add(obj any) error { return p.Update(obj) }

// Update stores an object and tells the handlers.
func (p *part) Update(in any) error { return p.put(in, false) }

// put stores an object and tells the handlers. initial marks one that was there first.
func (p *part) put(in any, initial bool) error {
	e := p.set.entry
	if !e.gate.pass(p, in) {
		return nil
	}
	version := versionOf(in)
	key, obj, err := p.prepare(in)
	if err != nil {
		return err
	}
	e.deliverMu.Lock()
	defer e.deliverMu.Unlock()
	old := p.store.set(key, obj, version)
	p.lastRV = version
	p.counts.lastEvent.Store(time.Now().UnixNano())
	p.overlay.passed(key, version)
	if was := uidOf(old); old != nil && was != uidOf(obj) {
		p.overlay.unbury(key, was)
	}
	p.checked()
	p.set.changed(key, replaced(old, obj, initial)...)
	e.takeOver(p.set)
	return nil
}

// Delete removes an object and tells the handlers of its last state.
func (p *part) Delete(in any) error {
	e := p.set.entry
	if !e.gate.pass(p, in) {
		return nil
	}
	version := versionOf(in)
	key, obj, err := p.prepare(in)
	e.deliverMu.Lock()
	defer e.deliverMu.Unlock()
	old := p.store.drop(key, version)
	p.lastRV = version
	p.counts.lastEvent.Store(time.Now().UnixNano())
	p.overlay.passed(key, version)
	p.overlay.unbury(key, uidOf(in))
	p.checked()
	if old != nil {
		if err != nil {
			obj = old.(runtime.Object) // the last state does not transform; the one before did
		}
		p.set.changed(key, change{old: obj})
	}
	e.takeOver(p.set)
	return err
}

// replaced describes what became of a key that held old and holds obj now. An object with another UID is
// another object: the former's end was not seen.
func replaced(old, obj any, initial bool) []change {
	switch {
	case old == nil:
		return []change{{new: obj, initial: initial}}
	case uidOf(old) != uidOf(obj):
		return []change{{old: old, unseen: true}, {new: obj}}
	default:
		return []change{{old: old, new: obj}}
	}
}

// Replace makes the store hold what a list gave and tells the handlers of the difference.
func (p *part) Replace(in []any, version string) error {
	objs := make(map[string]any, len(in))
	for _, o := range in {
		key, obj, err := p.prepare(o)
		if err != nil {
			return err
		}
		objs[key] = obj
	}
	e := p.set.entry
	e.deliverMu.Lock()
	defer e.deliverMu.Unlock()
	had := p.store.at()
	before := p.store.swap(objs, version)
	p.lastRV = version
	p.counts.lastEvent.Store(time.Now().UnixNano())
	p.counts.relists.Add(1)
	p.overlay.relisted(version, had, p.source.asked.Load(),
		func(key string) types.UID { return uidOf(objs[key]) },
		func(key string) types.UID { return uidOf(before[key]) })
	p.checked()
	first := !p.filled.Load()
	for key, obj := range objs {
		old := before[key]
		if old != nil && versionOf(old) == versionOf(obj) && uidOf(old) == uidOf(obj) {
			continue
		}
		p.set.changed(key, replaced(old, obj, first)...)
	}
	for key, old := range before {
		if objs[key] == nil {
			p.set.changed(key, change{old: old, unseen: true})
		}
	}
	p.set.wasFilled(p)
	return nil
}

// Bookmark notes that the store has seen everything up to a version.
func (p *part) Bookmark(version string) error {
	e := p.set.entry
	e.deliverMu.Lock()
	defer e.deliverMu.Unlock()
	p.store.Bookmark(version)
	p.counts.lastEvent.Store(time.Now().UnixNano())
	p.overlay.sweep(version)
	e.takeOver(p.set)
	return nil
}

// Resync does nothing: an entry resyncs its handlers itself.
func (p *part) Resync() error { return nil }

const (
	// firstRetry and maxRetry bound the wait before a failed list or watch is tried again.
	firstRetry = 800 * time.Millisecond
	maxRetry   = 30 * time.Second
	// maxRefusedRetry bounds it after the server refused the kind: rights and definitions often come a
	// little later, and nothing but another attempt tells.
	maxRefusedRetry = 10 * time.Second
	// steadyAfter is how long an attempt must last to count as one that went well.
	steadyAfter = 10 * time.Second
)

// run keeps the store filled until ctx is done.
func (p *part) run(ctx context.Context) {
	if p.set.entry.cache.newInformer != nil {
		p.mirror(ctx)
		return
	}
	reflector := toolscache.NewReflectorWithOptions(p.source, p.source.item(), p, toolscache.ReflectorOptions{
		Name:            "wherry/cache",
		TypeDescription: p.set.entry.gvk.String(),
	})
	delay := firstRetry
	for ctx.Err() == nil {
		began := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		p.source.closeWatch()
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) >= steadyAfter {
			delay = firstRetry
		}
		limit := maxRetry
		if err != nil {
			if refusal(err) {
				limit = maxRefusedRetry
			}
			p.set.entry.attemptFailed(p, err)
			p.set.entry.watchError(ctx, reflector, err)
		}
		if !p.set.entry.pause(ctx, min(delay, limit), p.kick) {
			return
		}
		delay = min(delay*2, maxRetry)
	}
}

// objectKey returns a stored object's namespace and name.
func objectKey(obj any) types.NamespacedName {
	m, err := meta.Accessor(obj)
	if err != nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
}
