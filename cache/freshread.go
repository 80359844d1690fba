// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
)

// get reads one object from the part: from the store, or from what the overlay knows better.
func (p *part) get(ctx context.Context, key client.ObjectKey, out client.Object, opts []client.GetOption) error {
	p.counts.reads.Add(1)
	shared := p.reader.sharedGet(opts)
	if p.overlay.empty() {
		return p.reader.read(key, out, shared)
	}
	var o client.GetOptions
	o.ApplyOptions(opts)
	if o.DisableReadYourWritesConsistency {
		return p.reader.read(key, out, shared)
	}
	obj, err := p.freshest(ctx, p.reader.storeKey(key))
	if err != nil {
		return err
	}
	if obj == nil {
		return p.reader.notFound(key)
	}
	return p.reader.emit(obj, out, shared)
}

// freshest returns the newest object known under key, or nil.
func (p *part) freshest(ctx context.Context, key string) (any, error) {
	if p.overlay.stuck.Load() {
		p.counts.live.Add(1)
		return p.fetch(ctx, key)
	}
	if err := p.settleRanges(ctx, key); err != nil {
		return nil, err
	}
	s, ok := p.overlay.slotAt(key)
	if !ok {
		return p.store.get(key), nil
	}
	if s.hole != nil && p.overlay.size() > maxOverlay {
		if err := p.settleAll(ctx); err != nil {
			return nil, err
		}
		s, _ = p.overlay.slotAt(key)
	}
	if s.hole != nil {
		return p.fetch(ctx, key)
	}
	obj, version := p.store.getAt(key)
	return s.resolve(obj, version), nil
}

// settleRanges asks the server once for all objects under each range that shares keys with prefix, and files what
// differs from the store.
func (p *part) settleRanges(ctx context.Context, prefix string) error {
	for {
		covered, found := p.overlay.rangeOver(prefix)
		if !found {
			return nil
		}
		sent := p.overlay.clock()
		objs, version, err := p.ask(ctx, covered)
		if err != nil {
			return err
		}
		for key, obj := range objs {
			if held := p.store.get(key); held == nil || versionOf(held) != versionOf(obj) {
				p.answer(key, obj, uidOf(obj), versionOf(obj), sent)
			}
		}
		under := func(key string) bool { return strings.HasPrefix(key, covered) }
		for _, f := range p.store.snapshot() {
			if under(f.key) && objs[f.key] == nil {
				p.answer(f.key, nil, "", version, sent)
			}
		}
		for key := range p.overlay.snapshot(under) {
			if objs[key] == nil {
				p.answer(key, nil, "", version, sent)
			}
		}
		p.settleBy(objs, covered, version, sent)
		p.overlay.closeRange(covered, sent)
	}
}

// settleAll asks the server once for everything the part holds, and fills all holes with that.
func (p *part) settleAll(ctx context.Context) error {
	_, _, err := p.live(ctx, &query{index: indexNames(p.set.form)})
	return err
}

// resolve returns what a key holds, given what the store has and the version it stands at.
func (s *slot) resolve(obj any, version string) any {
	if s.answer != nil && newer(s.answer.version, version) {
		return s.answer.obj
	}
	if obj != nil && s.buried(uidOf(obj)) {
		return nil
	}
	return obj
}

// fetch asks the server for one key, and makes the answer what the overlay says about it.
func (p *part) fetch(ctx context.Context, key string) (any, error) {
	p.counts.fetches.Add(1)
	sent := p.overlay.clock()
	name := keyToName(key)
	in, listed, err := p.source.fetch(ctx, name.Namespace, name.Name)
	if err != nil {
		return nil, err
	}
	if in == nil {
		if isNumber(listed) {
			p.answer(key, nil, "", listed, sent)
		}
		return p.atLeast(key, nil, "", listed), nil
	}
	_, obj, err := p.prepare(in)
	if err != nil {
		return nil, err
	}
	version := versionOf(in)
	if isNumber(version) {
		p.answer(key, obj, uidOf(obj), version, sent)
	}
	return p.atLeast(key, obj, uidOf(obj), version), nil
}

// atLeast returns what a fetch brought, unless store or overlay know something newer by now: reads that run at
// once must not take turns in going back.
func (p *part) atLeast(key string, obj any, uid types.UID, version string) any {
	s, ok := p.overlay.slotAt(key)
	held, at := p.store.getAt(key)
	if ok && s.buried(uid) {
		return s.resolve(held, at)
	}
	if ok && s.answer != nil && newer(s.answer.version, version) || newer(at, version) && isNumber(version) {
		return s.resolve(held, at)
	}
	return obj
}

func keyToName(key string) types.NamespacedName {
	ns, name, found := strings.Cut(key, "/")
	if !found {
		return types.NamespacedName{Name: key}
	}
	return types.NamespacedName{Namespace: ns, Name: name}
}

// find returns what a query selects from the part, newest state first known.
func (p *part) find(ctx context.Context, q *query, o *client.ListOptions) ([]stored, bool, error) {
	p.counts.reads.Add(1)
	if p.overlay.empty() || o.DisableReadYourWritesConsistency {
		found, more, err := p.reader.find(q)
		return found, more, p.explained(err, o)
	}
	if p.overlay.stuck.Load() {
		found, more, err := p.live(ctx, q)
		return found, more, p.explained(err, o)
	}
	if p.overlay.size() > maxOverlay && p.overlay.holes() > 0 {
		if err := p.settleAll(ctx); err != nil {
			return nil, false, err
		}
	}
	if err := p.settleRanges(ctx, q.prefix); err != nil {
		return nil, false, err
	}
	slots, whole, err := p.settleHoles(ctx, q)
	if err != nil {
		return nil, false, err
	}
	if whole {
		found, more, err := p.live(ctx, q)
		return found, more, p.explained(err, o)
	}
	found, more, err := p.overlaid(q, slots)
	return found, more, p.explained(err, o)
}

func (p *part) explained(err error, o *client.ListOptions) error {
	if err == nil {
		return nil
	}
	return p.reader.explain(err, o)
}

// covers tells which keys a query can concern.
func (q *query) covers(key string) bool {
	return strings.HasPrefix(key, q.prefix) && (q.after == "" || key > q.after)
}

// settleHoles fetches the holes that a query covers and returns what the overlay then says. Above
// maxFetchedHoles it fetches none and says that the whole query has to go to the server.
func (p *part) settleHoles(ctx context.Context, q *query) (slots map[string]slot, whole bool, err error) {
	slots = p.overlay.snapshot(q.covers)
	var holes []string
	for key, s := range slots {
		if s.hole != nil {
			holes = append(holes, key)
		}
	}
	if len(holes) > maxFetchedHoles {
		return nil, true, nil
	}
	for _, key := range holes {
		if _, err := p.fetch(ctx, key); err != nil {
			return nil, false, err
		}
	}
	if len(holes) > 0 {
		slots = p.overlay.snapshot(q.covers)
		for _, s := range slots {
			if s.hole != nil {
				return nil, true, nil // another write came in between
			}
		}
	}
	return slots, false, nil
}

// overlaid answers a query from the store, corrected by slots, which were taken before.
func (p *part) overlaid(q *query, slots map[string]slot) ([]stored, bool, error) {
	all := *q
	all.limit = 0
	found, _, version, err := p.store.queryAt(&all)
	if err != nil {
		return nil, false, err
	}
	if len(slots) == 0 {
		return cut(found, q.limit)
	}
	kept := make([]stored, 0, len(found)+len(slots))
	for _, f := range found {
		s, ok := slots[f.key]
		if !ok || s.resolve(f.obj, version) == f.obj {
			kept = append(kept, f)
		}
	}
	for key, s := range slots {
		if s.answer == nil || s.answer.obj == nil || s.resolve(nil, version) == nil {
			continue
		}
		fits, err := p.store.fulfils(q, key, s.answer.obj)
		if err != nil {
			return nil, false, err
		}
		if fits {
			kept = append(kept, stored{key, s.answer.obj})
		}
	}
	sortByKey(kept)
	return cut(kept, q.limit)
}

func cut(found []stored, limit int) ([]stored, bool, error) {
	if limit > 0 && len(found) > limit {
		return found[:limit], true, nil
	}
	return found, false, nil
}

// ask reads from the server all objects whose key begins with prefix.
func (p *part) ask(ctx context.Context, prefix string) (objs map[string]any, version string, err error) {
	p.counts.live.Add(1)
	one := *p.source
	if one.namespace == "" && prefix != "" {
		one.namespace = strings.TrimSuffix(prefix, "/")
	}
	list, err := one.list(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	objs = make(map[string]any, len(list.Items))
	for _, in := range list.Items {
		key, obj, err := p.prepare(in)
		if err != nil {
			return nil, "", err
		}
		objs[key] = obj
	}
	return objs, list.ResourceVersion, nil
}

// live answers a query from the server and settles what it can of the overlay on the way.
func (p *part) live(ctx context.Context, q *query) ([]stored, bool, error) {
	sent := p.overlay.clock()
	objs, version, err := p.ask(ctx, q.prefix)
	if err != nil {
		return nil, false, err
	}
	var found []stored
	for key, obj := range objs {
		fits, err := p.store.fulfils(q, key, obj)
		if err != nil {
			return nil, false, err
		}
		if fits {
			found = append(found, stored{key, obj})
		}
	}
	p.settleBy(objs, q.prefix, version, sent)
	sortByKey(found)
	return cut(found, q.limit)
}

// settleBy fills every hole under prefix with what a live list has for it.
func (p *part) settleBy(objs map[string]any, prefix, version string, sent uint64) {
	if !isNumber(version) {
		return
	}
	for key, s := range p.overlay.snapshot(func(key string) bool { return strings.HasPrefix(key, prefix) }) {
		if s.hole == nil || s.hole.since >= sent {
			continue
		}
		if obj := objs[key]; obj != nil {
			p.answer(key, obj, uidOf(obj), versionOf(obj), sent)
		} else {
			p.answer(key, nil, "", version, sent)
		}
	}
}

// lookAfterOverlay retires what the store has caught up with and finds out whether the watch seems stuck. It
// returns when to look again, 0 for never.
func (p *part) lookAfterOverlay() (again time.Duration) {
	p.overlay.sweep(p.store.at())
	stuck, news, again := p.overlay.aged(func(key string) types.UID { return uidOf(p.store.get(key)) })
	if stuck {
		again = overlayAge // the store may catch up without another write
	}
	if news {
		log := p.set.entry.cache.log.WithValues("kind", p.set.entry.gvk.String(), "namespace", p.scope.namespace)
		if stuck {
			log.Info("The cache has not seen own writes for too long; reads of the kind go to the server until it has", "limit", overlayAge.String())
		} else {
			log.Info("The cache has caught up with own writes; reads are answered from it again")
		}
	}
	return again
}

// hides reports whether the scope's selectors keep an object out of the store. known is false if a selector asks
// for a field that only the server can judge.
func (sc *scope) hides(m metav1.Object) (hidden bool, known bool) {
	if !sc.label.Empty() && !sc.label.Matches(labels.Set(m.GetLabels())) {
		return true, true
	}
	for _, t := range fieldTerms(sc.field) {
		if !builtinField(t.field) {
			return false, false
		}
		value := m.GetName()
		if t.field == "metadata.namespace" {
			value = m.GetNamespace()
		}
		if !t.matches(value) {
			return true, true
		}
	}
	return false, true
}

// list reads from all parts that a List concerns, in one order.
func (s *set) list(ctx context.Context, out client.ObjectList, o *client.ListOptions) error {
	parts := s.parts
	if s.namespaced && o.Namespace != "" {
		p := s.partFor(o.Namespace)
		if p == nil {
			return unknownNamespace(s.entry.gvk, o.Namespace, s.known())
		}
		parts = []*part{p}
	}
	reader := &parts[0].reader
	q, err := reader.query(o, apiutil.FormOf(out))
	if err != nil {
		return err
	}
	var all []stored
	more, shared := false, true
	for _, p := range parts {
		found, cut, err := p.find(ctx, q, o)
		if err != nil {
			return err
		}
		more = more || cut
		shared = shared && p.reader.sharedList(o)
		if len(parts) == 1 {
			all = found
		} else {
			all = append(all, found...)
		}
	}
	if len(parts) > 1 {
		sortByKey(all)
		if q.limit > 0 && len(all) > q.limit {
			all, more = all[:q.limit], true
		}
	}
	return reader.emitList(all, more, out, shared)
}
