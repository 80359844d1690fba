// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net/http"

	"github.com/wherry-dev/wherry/cache"
	"github.com/wherry-dev/wherry/webhook"
)

// stage is a moment in the life of a manager at which a group of runnables starts.
type stage int

const (
	stageHTTP stage = iota
	stageWebhooks
	stageConversions
	stageCaches
	stageOthers
	stageWarmup
	stageElected
	stageCount

	// stageLease has no runnables: to stop it is to end the term of leadership, if there is one.
	stageLease stage = -1
)

// startOrder is the order in which stages start. Each waits until the one before is ready, and the last for leadership.
//
// Probes answer from the start, or a slow cache would look like a dead process. Webhooks come before caches: listing a kind
// whose stored version is an old one makes the API server call our own conversion webhook, which it has to be told of.
var startOrder = []stage{stageHTTP, stageWebhooks, stageConversions, stageCaches, stageOthers, stageWarmup, stageElected}

// stopOrder is the order in which they stop, those of one row together. It is not the reverse: leadership ends only after
// what needs none, and probes and metrics stay to the end, to tell how the stop goes. The lease goes as soon as nothing needs
// it, since another replica waits for it, and before the caches' stage, whose recorder can still tell of it. Conversions are put
// back while there is a lease: once it has gone, the fence refuses all writes.
var stopOrder = [][]stage{{stageWarmup, stageOthers}, {stageElected}, {stageConversions}, {stageLease}, {stageCaches}, {stageWebhooks}, {stageHTTP}}

// stageRules says which runnables a stage takes; the first that takes a runnable has it. ready, if there is one, blocks until
// a started runnable can be built upon, or ctx ends.
var stageRules = [stageCount]struct {
	name  string
	takes func(Runnable) bool
	ready func(ctx context.Context, r Runnable) error
}{
	stageHTTP:        {name: "HTTP servers", takes: isHTTPServer},
	stageWebhooks:    {name: "webhooks", takes: isWebhookServer},
	stageConversions: {name: "conversions", takes: tellsOfConversions, ready: conversionsWritten},
	stageCaches:      {name: "caches", takes: hasCache, ready: cacheSynced},
	stageOthers:      {name: "others", takes: needsNoLeadership},
	stageWarmup:      {name: "warm-up", takes: isWarmup},
	stageElected:     {name: "leader", takes: func(Runnable) bool { return true }},
}

func stageOf(r Runnable) stage {
	for s, rule := range stageRules {
		if rule.takes(r) {
			return stage(s)
		}
	}
	return stageElected
}

// isHTTPServer knows our servers, and a metrics server by what only it can do.
func isHTTPServer(r Runnable) bool {
	if s, ok := r.(*Server); ok {
		return !s.NeedLeaderElection()
	}
	_, ok := r.(interface {
		AddExtraHandler(path string, handler http.Handler) error
	})
	return ok
}

func isWebhookServer(r Runnable) bool {
	_, ok := r.(webhook.Server)
	return ok
}

// converting is a runnable that tells the API server where to find our conversion webhooks, such as local.Conversions.
type converting interface {
	WaitForConversions(ctx context.Context) bool
}

func tellsOfConversions(r Runnable) bool {
	_, ok := r.(converting)
	return ok
}

func conversionsWritten(ctx context.Context, r Runnable) error {
	if !r.(converting).WaitForConversions(ctx) {
		return context.Cause(ctx)
	}
	return nil
}

// cached is what a cluster is to its stage.
type cached interface{ GetCache() cache.Cache }

func hasCache(r Runnable) bool {
	_, ok := r.(cached)
	return ok
}

func cacheSynced(ctx context.Context, r Runnable) error {
	if !r.(cached).GetCache().WaitForCacheSync(ctx) {
		return context.Cause(ctx)
	}
	return nil
}

func needsNoLeadership(r Runnable) bool {
	l, ok := r.(LeaderElectionRunnable)
	return ok && !isWarmup(r) && !l.NeedLeaderElection()
}

func isWarmup(r Runnable) bool {
	_, ok := r.(warmup)
	return ok
}
