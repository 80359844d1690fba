// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import "github.com/wherry-dev/wherry/client/apiutil"

// tells reports whether handlers of a form hear of the set's changes. There is at most one such set at a time:
// handlers of whole objects hear from the first set that has them, filled or not, and those of metadata stay with
// the set they have until its successor takes over. The caller holds deliverMu.
func (s *set) tells(form apiutil.Form) bool {
	return s.serves(form) && (form != apiutil.Metadata || !s.metadataElsewhere)
}

// telling returns the set that handlers of a form hear from and whether it is filled, or nil while the kind is not
// mapped. The caller holds deliverMu.
func (e *entry) telling(form apiutil.Form) (_ *set, full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range []*set{e.current, e.next} {
		if s != nil && s.tells(form) {
			return s, s.missing == 0
		}
	}
	return nil, false
}

// changed tells the handlers what happened to a key. The caller holds deliverMu.
func (s *set) changed(key string, changes ...change) {
	for _, r := range s.entry.handlers {
		if !s.tells(r.form) {
			continue
		}
		for _, c := range changes {
			r.send(key, c)
		}
	}
}

// wasFilled notes that a list of the part went well. The caller holds deliverMu.
func (s *set) wasFilled(p *part) {
	e := s.entry
	e.mu.Lock()
	p.failed = nil
	first := !p.filled.Swap(true)
	if first {
		s.missing--
	}
	ready := s.missing == 0
	if first && ready && s == e.current {
		e.live.Store(s)
	}
	e.broadcast()
	e.mu.Unlock()

	if first && ready {
		s.announce()
	}
	e.takeOver(s)
}

// announce tells the handlers that hear from the set, and who waits in their forms, that it is filled. The caller
// holds deliverMu.
func (s *set) announce() {
	e := s.entry
	for form, filled := range e.filled {
		if !s.tells(apiutil.Form(form)) {
			continue
		}
		select {
		case <-filled:
		default:
			close(filled)
		}
	}
	for _, r := range e.handlers {
		if s.tells(r.form) {
			r.filled()
		}
	}
}

// awaited returns what is closed when the entry is filled in all forms that it was asked for.
func (e *entry) awaited() (all []<-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil {
		return append(all, e.filled[apiutil.FormOf(e.example)])
	}
	for _, s := range []*set{e.current, e.next} {
		if s != nil {
			all = append(all, e.filled[s.form])
		}
	}
	return all
}

// takeOver replaces the set of metadata by one that holds whole objects, once that one is filled and has seen all
// that the former has. The handlers of metadata move over and hear of the difference only; those of whole objects
// heard from s from the beginning. Called after each event of a set, with deliverMu held.
func (e *entry) takeOver(s *set) {
	if !s.metadataElsewhere {
		return
	}
	e.mu.Lock()
	if e.next != s || s.missing > 0 || e.stopped {
		e.mu.Unlock()
		return
	}
	former := e.current
	for i, p := range s.parts {
		if former.parts[i].filled.Load() && newer(former.parts[i].lastRV, p.store.at()) {
			e.mu.Unlock()
			return // an event that former had already is still to come
		}
	}
	e.current, e.next = s, nil
	s.metadataElsewhere, former.metadataElsewhere = false, true // former may be at an event that it got before its end
	e.live.Store(s)
	if former.cancel != nil {
		former.cancel()
	}
	e.broadcast()
	e.mu.Unlock()

	for i, p := range s.parts {
		e.tellDifference(former.parts[i], p)
	}
	s.announce()
}

// tellDifference tells the handlers of metadata what one store has that the one before it had not. The caller
// holds deliverMu.
func (e *entry) tellDifference(former, p *part) {
	initial := !former.filled.Load()
	tell := func(key string, changes ...change) {
		for _, r := range e.handlers {
			if r.form != apiutil.Metadata {
				continue
			}
			for _, c := range changes {
				r.send(key, c)
			}
		}
	}
	before, after := former.store, p.store
	for _, key := range after.ListKeys() {
		old, obj := before.get(key), after.get(key)
		if old != nil && versionOf(old) == versionOf(obj) && uidOf(old) == uidOf(obj) {
			continue
		}
		tell(key, replaced(old, obj, initial)...)
	}
	for _, key := range before.ListKeys() {
		if after.get(key) == nil {
			tell(key, change{old: before.get(key), unseen: true})
		}
	}
}
