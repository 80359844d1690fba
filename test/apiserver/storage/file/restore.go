// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
)

// Snapshot is the state of a store at one moment. It costs nothing to take, keeps what it holds in memory and is of
// use for the store it was taken from only.
type Snapshot struct {
	store *Store
	root  *node
	rev   int64
}

// Revision gives the moment the snapshot was taken.
func (p *Snapshot) Revision() int64 { return p.rev }

// Snapshot takes a snapshot.
func (s *Store) Snapshot() *Snapshot {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &Snapshot{store: s, root: s.tree.share(), rev: s.rev}
}

// Restored tells what a Restore did.
type Restored struct {
	// Revision is that of the store afterwards.
	Revision int64
	// Deleted are the keys that had been made since the snapshot.
	Deleted []string
	// Written are the keys that had been changed or deleted since.
	Written []string
}

// Restore makes the store hold what it held when the snapshot was taken. It holds back other writers, works out the
// difference and writes it in one batch of ordinary events at new revisions, so every watch goes on and sees what
// happened. Keys made since are deleted first, those of the highest rank at the head; then keys changed or deleted
// since are put back, those of the lowest rank at the head. A nil rank means DefinitionsFirst.
func (s *Store) Restore(ctx context.Context, p *Snapshot, rank func(key string) int) (Restored, error) {
	if p.store != s {
		return Restored{}, errForeignSnapshot
	}
	if rank == nil {
		rank = DefinitionsFirst
	}
	var done Restored
	err := s.do(&request{alone: func() error {
		b := batchState{store: s, now: s.now().UnixNano(), rev: s.rev}
		done = Restored{Revision: s.rev}
		r := &request{ctx: ctx}
		if err := s.writable(r); err != nil {
			return err
		}
		deletes, puts := difference(p.root, s.tree.root)
		slices.SortStableFunc(deletes, func(x, y write) int { return cmp.Compare(rank(y.key), rank(x.key)) })
		slices.SortStableFunc(puts, func(x, y write) int { return cmp.Compare(rank(x.key), rank(y.key)) })
		for _, w := range deletes {
			done.Deleted = append(done.Deleted, w.key)
		}
		for _, w := range puts {
			done.Written = append(done.Written, w.key)
		}
		r.writes = append(deletes, puts...)
		if len(r.writes) == 0 {
			return nil
		}
		b.add(r)
		if err := s.persist(&b); err != nil {
			return refused(err)
		}
		s.publish(b.events)
		done.Revision = s.rev
		return nil
	}})
	if err != nil {
		return Restored{}, err
	}
	return done, nil
}

// DefinitionsFirst ranks custom resource definitions below everything else, so that instances go before their
// definition and come back after it.
func DefinitionsFirst(key string) int {
	if strings.Contains(key, "/apiextensions.k8s.io/customresourcedefinitions/") {
		return 0
	}
	return 1
}

// difference gives the writes that turn now into then. Both are walked in order, side by side.
func difference(then, now *node) (deletes, puts []write) {
	have := versionsOf(now)
	want := versionsOf(then)
	for len(have) > 0 || len(want) > 0 {
		switch {
		case len(want) == 0 || len(have) > 0 && have[0].key < want[0].key:
			deletes = append(deletes, write{op: op{kind: opDelete, key: have[0].key}, expect: anyRevision})
			have = have[1:]
		case len(have) == 0 || want[0].key < have[0].key:
			puts = append(puts, putBack(want[0]))
			want = want[1:]
		default:
			if have[0] != want[0] && !(bytes.Equal(have[0].value, want[0].value) && have[0].expires == want[0].expires) {
				puts = append(puts, putBack(want[0]))
			}
			have, want = have[1:], want[1:]
		}
	}
	return deletes, puts
}

func putBack(v *version) write {
	return write{op: op{kind: opPut, key: v.key, value: v.value, expires: v.expires}, expect: anyRevision}
}

func versionsOf(n *node) []*version {
	if n == nil {
		return nil
	}
	all := make([]*version, 0, n.size.count)
	n.ascend("", func(v *version) bool {
		all = append(all, v)
		return true
	})
	return all
}
