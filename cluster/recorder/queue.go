// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// queueSize is how many events wait to be sent before new ones are dropped.
	queueSize = 1000
	// maxTries is how often an event is sent before it is given up, retryAfter the first wait between, doubled each time.
	maxTries   = 5
	retryAfter = time.Second
	// sendLimit is how long one request may take.
	sendLimit = 30 * time.Second
	// flushLimit is how long the end of a program waits until the queue is empty.
	flushLimit = 5 * time.Second
)

// job sends one event.
type job func(ctx context.Context) error

// queue holds events that wait to be sent, in order, by one goroutine.
type queue struct {
	log     logr.Logger
	mu      sync.Mutex
	jobs    []job
	dropped int
	closed  bool
	wake    chan struct{}
}

func newQueue(log logr.Logger) *queue { return &queue{log: log, wake: make(chan struct{}, 1)} }

// add queues an event, or drops it: when the queue is full, and after its end.
func (q *queue) add(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		q.log.V(1).Info("An event was recorded after the end and is dropped")
		return
	}
	if len(q.jobs) >= queueSize {
		if q.dropped++; q.dropped == 1 {
			q.log.Info("Events are recorded faster than they can be sent; some are dropped", "queued", queueSize)
		}
		return
	}
	q.jobs = append(q.jobs, j)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) take() job {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) == 0 {
		return nil
	}
	j := q.jobs[0]
	q.jobs[0] = nil
	q.jobs = q.jobs[1:]
	if len(q.jobs) == 0 && q.dropped > 0 {
		q.log.Info("Events were dropped", "count", q.dropped)
		q.dropped = 0
	}
	return j
}

// run sends events until ctx is done, then what is left within flushLimit.
func (q *queue) run(ctx context.Context, s *seriesSender) {
	// The last events are sent after ctx is done, so requests have a context of their own.
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(flushLimit, stop) })()
	tick := time.NewTicker(seriesPeriod)
	defer tick.Stop()
	for {
		for j := q.take(); j != nil; j = q.take() {
			q.send(ctx, sending, j)
		}
		select {
		case <-ctx.Done():
			q.flush(ctx, sending, s)
			return
		case <-tick.C:
			for _, j := range s.due(false) {
				q.send(ctx, sending, j)
			}
		case <-q.wake:
		}
	}
}

// flush sends what is left and closes the queue.
func (q *queue) flush(ctx, sending context.Context, s *seriesSender) {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	for j := q.take(); j != nil && sending.Err() == nil; j = q.take() {
		q.send(ctx, sending, j)
	}
	for _, j := range s.due(true) {
		if sending.Err() != nil {
			return
		}
		q.send(ctx, sending, j)
	}
}

// send sends one event, again if the server could not be reached. What the server refuses is dropped.
func (q *queue) send(ctx, sending context.Context, j job) {
	wait := retryAfter
	for try := 1; ; try++ {
		limited, cancel := context.WithTimeout(sending, sendLimit)
		err := j(limited)
		cancel()
		var status apierrors.APIStatus
		switch {
		case err == nil:
			return
		case sending.Err() != nil, try == maxTries, ctx.Err() != nil,
			errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500 && !apierrors.IsTooManyRequests(err):
			q.log.Info("An event could not be sent and is dropped", "error", err.Error())
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		wait *= 2
	}
}
