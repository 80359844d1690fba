// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

// restoreLimit is how long Restore waits for the server's own parts to have seen what it wrote.
const restoreLimit = 10 * time.Second

// Snapshot is the state of a server's objects at one moment. It is of use for that server only, while it runs.
type Snapshot struct{ state *file.Snapshot }

// Revision returns the resourceVersion of the moment the snapshot was taken.
func (p *Snapshot) Revision() int64 { return p.state.Revision() }

// Restored tells what a Restore did.
type Restored struct {
	// Revision is the resourceVersion afterwards. It is never lower than before.
	Revision int64 `json:"revision"`
	// Deleted is how many objects were made since the snapshot and are gone again.
	Deleted int `json:"deleted"`
	// Written is how many objects were changed or deleted since and are as they were.
	Written int `json:"written"`
}

// Snapshot takes a snapshot. It takes microseconds and costs the memory of what is changed from then on.
func (s *Server) Snapshot() *Snapshot { return &Snapshot{state: s.parts.store.Snapshot()} }

// Restore makes the server hold what it held when the snapshot was taken. Writers wait meanwhile. What differs is
// written as ordinary events at new resourceVersions, so no watch breaks and no client lists again, save on kinds
// whose definition changed; an object that is put back keeps its UID. It returns when authorizer, admission, the
// handler of custom resources and discovery have seen it all. The controllers that run beside the server are stopped
// before and begin afresh after: what they remember would be of another past.
//
// Calls follow one another. The context bounds the wait, not the write.
func (s *Server) Restore(ctx context.Context, p *Snapshot) (Restored, error) {
	s.restoring.Lock()
	defer s.restoring.Unlock()
	s.controllers.Stop()
	done, err := s.parts.store.Restore(ctx, p.state, nil)
	if err != nil {
		return Restored{}, errors.Join(fmt.Errorf("restore: %w", err), s.startControllers(s.halting))
	}
	out := Restored{Revision: done.Revision, Deleted: len(done.Deleted), Written: len(done.Written)}
	limited, cancel := context.WithTimeoutCause(ctx, restoreLimit, errors.New("it took longer than "+restoreLimit.String()))
	defer cancel()
	release := context.AfterFunc(s.halting, cancel)
	defer release()
	if err := s.settle(limited, changes(done)); err != nil {
		return out, errors.Join(fmt.Errorf("restored, but the server has not seen all of it: %w", err), s.startControllers(s.halting))
	}
	return out, s.startControllers(s.halting)
}

// change is one key a Restore wrote, and when.
type change struct {
	key      string
	revision int64
	deleted  bool
}

// changes lists what a Restore wrote. Each write has a revision of its own, the last one's being the store's.
func changes(r file.Restored) []change {
	out := make([]change, 0, len(r.Deleted)+len(r.Written))
	revision := r.Revision - int64(len(r.Deleted)+len(r.Written))
	for _, key := range r.Deleted {
		revision++
		out = append(out, change{key: key, revision: revision, deleted: true})
	}
	for _, key := range r.Written {
		revision++
		out = append(out, change{key: key, revision: revision})
	}
	return out
}
