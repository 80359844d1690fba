// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Record is what candidates know of each other: who leads, since when, and how long they wait for a sign of life.
type Record struct {
	// HolderIdentity is the leader's; empty means that nobody leads and anybody may.
	HolderIdentity string
	// LeaseDurationSeconds is how long others wait, counted from when they last saw the record change.
	LeaseDurationSeconds int
	// AcquireTime and RenewTime are by the leader's clock. Candidates only look whether they change.
	AcquireTime, RenewTime time.Time
	// LeaderTransitions counts how often the record changed hands.
	LeaderTransitions int
	// Strategy and PreferredHolder belong to Kubernetes' coordinated election: kept as they are found.
	Strategy        coordinationv1.CoordinatedLeaseStrategy
	PreferredHolder string
}

// same says whether r and o are one record: if so, its writer gave no sign of life in between.
func (r Record) same(o Record) bool {
	times := r.AcquireTime.Equal(o.AcquireTime) && r.RenewTime.Equal(o.RenewTime)
	r.AcquireTime, r.RenewTime, o.AcquireTime, o.RenewTime = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return times && r == o
}

// Lock keeps one record where all candidates can read and write it. Every method that takes a context returns soon after it
// ends. An elector calls the methods one after the other, never two at once.
type Lock interface {
	// Get reads the record. The error is one that apierrors.IsNotFound knows if there is none yet.
	Get(ctx context.Context) (*Record, error)
	// Create writes the first record, and fails if there is one.
	Create(ctx context.Context, record Record) error
	// Update replaces the record that the last successful Get, Create or Update of this lock dealt with. It fails, with an
	// error that apierrors.IsConflict knows, if somebody wrote it since.
	Update(ctx context.Context, record Record) error
	// RecordEvent tells the cluster of a change, such as "became leader". It does not block.
	RecordEvent(event string)
	// Identity names this candidate; no other has the same.
	Identity() string
	// Describe names the lock for logs, as "namespace/name".
	Describe() string
}
