// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wherry-dev/wherry/manager/leaderelection"
)

// Board is one record, in memory, that any number of candidates contend for by the rules of an API server. The zero value
// has no record yet.
type Board struct {
	mu      sync.Mutex
	record  *leaderelection.Record
	version int
	writes  []leaderelection.Record
}

// Record returns the record now, nil if there is none, and all that was ever written, oldest first.
func (b *Board) Record() (now *leaderelection.Record, writes []leaderelection.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.record != nil {
		now = new(*b.record)
	}
	return now, slices.Clone(b.writes)
}

// Put replaces the record, as a foreign writer would; nil deletes it.
func (b *Board) Put(record *leaderelection.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.record = record
	b.version++
}

// Lock returns the way to the board of the candidate with that identity.
func (b *Board) Lock(identity string) *BoardLock {
	return &BoardLock{board: b, identity: identity}
}

// BoardLock is one candidate's way to a [Board].
type BoardLock struct {
	board    *Board
	identity string

	mu      sync.Mutex
	version int   // of the record last dealt with
	fail    error // instead of every answer
	events  []string
}

var _ leaderelection.Lock = (*BoardLock)(nil)

// Fail makes every call from now on fail with err, as a partition would; nil ends that.
func (l *BoardLock) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

// Events returns what was recorded, oldest first.
func (l *BoardLock) Events() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// do runs f with both locks held, unless the way is cut.
func (l *BoardLock) do(ctx context.Context, f func(b *Board) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return l.fail
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.board.mu.Lock()
	defer l.board.mu.Unlock()
	return f(l.board)
}

func (l *BoardLock) store(b *Board, r leaderelection.Record) {
	b.record, b.version = &r, b.version+1
	b.writes = append(b.writes, r)
	l.version = b.version
}

// Get implements leaderelection.Lock.
func (l *BoardLock) Get(ctx context.Context) (r *leaderelection.Record, err error) {
	err = l.do(ctx, func(b *Board) error {
		if b.record == nil {
			return apierrors.NewNotFound(leases, "board")
		}
		r, l.version = new(*b.record), b.version
		return nil
	})
	return r, err
}

// Create implements leaderelection.Lock.
func (l *BoardLock) Create(ctx context.Context, record leaderelection.Record) error {
	return l.do(ctx, func(b *Board) error {
		if b.record != nil {
			return apierrors.NewAlreadyExists(leases, "board")
		}
		l.store(b, record)
		return nil
	})
}

// Update implements leaderelection.Lock.
func (l *BoardLock) Update(ctx context.Context, record leaderelection.Record) error {
	return l.do(ctx, func(b *Board) error {
		switch {
		case b.record == nil:
			return apierrors.NewNotFound(leases, "board")
		case b.version != l.version:
			return apierrors.NewConflict(leases, "board", errors.New("somebody wrote it meanwhile"))
		}
		l.store(b, record)
		return nil
	})
}

// RecordEvent implements leaderelection.Lock.
func (l *BoardLock) RecordEvent(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
}

// Identity implements leaderelection.Lock.
func (l *BoardLock) Identity() string { return l.identity }

// Describe implements leaderelection.Lock.
func (*BoardLock) Describe() string { return "memory/board" }
