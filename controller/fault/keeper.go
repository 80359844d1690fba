// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/wherry-dev/wherry/manager/metrics"
)

// Kind is what went wrong; it is a value of the metric's label "fault".
type Kind string

// The kinds.
const (
	Predicate       Kind = "predicate_panic"
	Handler         Kind = "handler_panic" // also a map function's
	RateLimiter     Kind = "rate_limiter"
	NegativeRequeue Kind = "negative_requeue"
)

var contained = sync.OnceValue(func() *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "wherry_contained_faults_total",
		Help: "Faults of user code that the controller contained, by controller and kind of fault.",
	}, []string{"controller", "fault"})
	metrics.Registry.MustRegister(v)
	return v
})

// Keeper notes the faults of one controller. It is safe for concurrent use,
// and a nil Keeper drops what it is told.
type Keeper struct {
	controller string
	log        logr.Logger

	mu   sync.Mutex
	seen map[Kind]bool // logged already
}

// NewKeeper makes the keeper of a controller. Its lines go to log, which
// should name the controller.
func NewKeeper(controller string, log logr.Logger) *Keeper {
	return &Keeper{controller: controller, log: log}
}

// Note counts a fault and logs it if it is the first of its kind. The key is
// what the fault was about.
func (k *Keeper) Note(kind Kind, key any, err error) {
	if k == nil {
		return
	}
	contained().WithLabelValues(k.controller, string(kind)).Inc()
	k.mu.Lock()
	first := !k.seen[kind]
	if first {
		if k.seen == nil {
			k.seen = map[Kind]bool{}
		}
		k.seen[kind] = true
	}
	k.mu.Unlock()
	if first {
		k.log.Error(err, "Contained a fault; more of its kind are only counted", "fault", string(kind), "key", key)
	}
}

type contextKey struct{}

// IntoContext returns a context that carries k to the sources of a controller.
func IntoContext(ctx context.Context, k *Keeper) context.Context {
	return context.WithValue(ctx, contextKey{}, k)
}

// FromContext returns the keeper that IntoContext put there. Without one it
// makes one that logs to the context's logger.
func FromContext(ctx context.Context) *Keeper {
	if k, ok := ctx.Value(contextKey{}).(*Keeper); ok {
		return k
	}
	return NewKeeper("", logr.FromContextOrDiscard(ctx))
}
