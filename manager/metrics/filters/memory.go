// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// maxAnswers bounds how many answers one memory holds: bad tokens are free for a caller, so they must not be for us.
const maxAnswers = 4096

// digest stands for what was asked: secrets are not kept.
type digest [sha256.Size]byte

// memory keeps answers for a while, and asks once for callers that want the same answer at one moment.
type memory[V any] struct {
	keep func(V) time.Duration // how long an answer counts

	flight  singleflight.Group
	mu      sync.Mutex
	answers map[digest]answer[V] // guarded by mu; at most maxAnswers
}

type answer[V any] struct {
	value V
	until time.Time
}

func newMemory[V any](keep func(V) time.Duration) *memory[V] {
	return &memory[V]{keep: keep, answers: map[digest]answer[V]{}}
}

// get returns what is remembered for key, or asks. Errors are not remembered. ask goes on when ctx ends, since others may
// wait for the same; it has its own limit.
func (m *memory[V]) get(ctx context.Context, key digest, ask func(context.Context) (V, error)) (V, error) {
	m.mu.Lock()
	known, ok := m.answers[key]
	m.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.value, nil
	}
	asked := m.flight.DoChan(string(key[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		v, err := ask(ctx)
		if err == nil {
			m.put(key, v)
		}
		return v, err
	})
	var zero V
	select {
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	case r := <-asked:
		if r.Err != nil {
			return zero, r.Err
		}
		return r.Val.(V), nil
	}
}

func (m *memory[V]) put(key digest, v V) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.answers) >= maxAnswers {
		m.makeRoom(now)
	}
	m.answers[key] = answer[V]{v, now.Add(m.keep(v))}
}

// makeRoom drops what counts no more, and if that is little, others: what is dropped is asked again. A quarter is freed at
// once, so that not every new answer goes through all old ones. The caller holds mu.
func (m *memory[V]) makeRoom(now time.Time) {
	for k, a := range m.answers {
		if !now.Before(a.until) {
			delete(m.answers, k)
		}
	}
	for k := range m.answers {
		if len(m.answers) <= maxAnswers*3/4 {
			return
		}
		delete(m.answers, k)
	}
}
