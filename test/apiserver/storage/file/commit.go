// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"encoding/binary"
	"fmt"
)

// commit writes a batch: it checks the conditions in order, makes what passes durable with one sync, then visible,
// and leaves the answers in the requests. Only the leader of the queue calls it.
func (s *Store) commit(batch []*request) {
	if batch[0].alone != nil {
		batch[0].err = batch[0].alone()
		return
	}
	b := batchState{store: s, now: s.now().UnixNano(), rev: s.rev}
	var live []*request // whose answer hangs on the batch becoming durable
	for _, r := range batch {
		if err := s.writable(r); err != nil {
			r.err = err
			continue
		}
		if b.add(r) {
			live = append(live, r)
		}
	}
	if len(b.events) == 0 {
		return
	}
	if err := s.persist(&b); err != nil {
		for _, r := range live {
			r.err, r.applied, r.current = refused(err), false, nil
		}
		return
	}
	s.publish(b.events)
	s.untidied += len(b.events)
	s.tidy()
}

// writable tells why r cannot be written at all.
func (s *Store) writable(r *request) error {
	if err := s.Failure(); err != nil {
		return refused(err)
	}
	if r.ctx != nil && r.ctx.Err() != nil {
		return r.ctx.Err() // nobody waits for it any more, and nothing was written
	}
	return nil
}

// batchState is a batch in the making.
type batchState struct {
	store  *Store
	now    int64
	rev    int64 // of the last event
	events []*event
	puts   bool                // whether anything needs more room than a delete
	ahead  map[string]*version // what the batch has done to keys so far, nil for deleted; made on demand
}

func (b *batchState) get(key string) *version {
	if v, ok := b.ahead[key]; ok {
		return v
	}
	return b.store.tree.root.get(key)
}

// add checks the request's conditions and, if all hold, adds its events. It tells whether the answer hangs on the
// batch becoming durable, as it also does when a condition fails because of an earlier request of the batch: nobody may
// hear of a write before it is durable.
func (b *batchState) add(r *request) bool {
	for i := range r.writes {
		w := &r.writes[i]
		if w.expect == anyRevision {
			continue
		}
		cur := b.get(w.key)
		mod := int64(0)
		if cur != nil {
			mod = cur.mod
		}
		if mod != w.expect {
			r.current, r.rev = cur, b.rev
			_, ahead := b.ahead[w.key]
			return ahead
		}
	}
	for i := range r.writes {
		b.apply(r, &r.writes[i])
	}
	r.applied, r.rev = true, b.rev
	return true
}

func (b *batchState) apply(r *request, w *write) {
	prev := b.get(w.key)
	if prev == nil && w.kind == opDelete {
		return // there is nothing to delete, so nothing happens
	}
	b.rev++
	e := &event{rev: b.rev, key: w.key, time: b.now, prev: prev}
	if w.kind == opPut {
		e.cur = &version{key: w.key, value: w.value, created: b.rev, mod: b.rev, expires: w.expires}
		if e.prev != nil {
			e.cur.created = e.prev.created
		}
		if w.object != nil {
			w.object.publish(e.cur)
		}
		b.puts = true
	}
	r.made = e.cur
	b.events = append(b.events, e)
	if b.ahead == nil {
		b.ahead = make(map[string]*version, 8)
	}
	b.ahead[w.key] = e.cur
}

// persist makes the batch as durable as the mode says.
func (s *Store) persist(b *batchState) error {
	if s.log == nil {
		return nil
	}
	l := s.log
	l.buf = startFrame(l.buf)
	for _, e := range b.events {
		o := op{kind: opDelete, key: e.key}
		if e.cur != nil {
			o = op{kind: opPut, key: e.key, value: e.cur.value, expires: e.cur.expires}
		}
		l.buf = appendOp(l.buf, o)
	}
	return s.append(frameWrites, len(b.events), b.events[0].rev, b.now, !b.puts)
}

// append seals the frame in the log's buffer and writes it. An error that leaves the outcome open poisons the store.
func (s *Store) append(kind frameType, count int, rev, now int64, urgent bool) error {
	err := s.log.append(kind, count, rev, now, urgent)
	if err == nil || isRefusal(err) {
		return err
	}
	s.poison(err)
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}

// publish makes durable events visible, all at once.
func (s *Store) publish(events []*event) {
	s.mu.Lock()
	for _, e := range events {
		if e.cur != nil {
			s.tree.set(e.cur)
		} else {
			s.tree.delete(e.key)
		}
		s.history.append(e)
		s.hub.offer(e)
	}
	s.rev = events[len(events)-1].rev
	s.mu.Unlock()
	s.expiry.note(events)
}

// tidyEvery is how many events there are between two looks at what history may forget.
const tidyEvery = 256

// tidy does what has become due after a batch: it forgets old history and starts a snapshot. Neither may fail a
// write.
func (s *Store) tidy() {
	if s.untidied >= tidyEvery || s.history.bytes > maxHistoryBytes {
		s.untidied = 0
		if floor := s.history.surplus(&s.opts, s.now()); floor > 0 {
			_ = s.compact(floor) // if the disk refuses, the next batch tries again or is refused itself
		}
	}
	s.considerSnapshot()
}

// compact forgets what happened up to and including floor. Only the leader calls it.
func (s *Store) compact(floor int64) error {
	if s.log != nil {
		s.log.buf = binary.AppendVarint(startFrame(s.log.buf), floor)
		if err := s.append(frameCompact, 0, s.rev, s.now().UnixNano(), true); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.history.cut(floor)
	s.mu.Unlock()
	return nil
}

// Compact forgets what happened up to and including revision rev: watches from below it and lists at a revision
// below it are refused afterwards. A rev below the present floor changes nothing, one above the present revision is
// an error.
func (s *Store) Compact(rev int64) error {
	return s.do(&request{alone: func() error {
		switch {
		case rev > s.rev:
			return fmt.Errorf("compact to %d: %w (the store is at %d)", rev, ErrFutureRevision, s.rev)
		case rev <= s.history.floor:
			return nil
		}
		if err := s.Failure(); err != nil {
			return refused(err)
		}
		return s.compact(rev)
	}})
}
