// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The controllers by name.
const (
	Namespaces      = "namespaces"
	Garbage         = "garbage"
	ServiceAccounts = "serviceaccounts"
	ReplicaSets     = "replicaset"
	Deployments     = "deployment"
	Jobs            = "job"
)

// syncLimit is how long a server may take to answer the controllers' first lists.
const syncLimit = 30 * time.Second

// table holds how each controller is started. A start function makes its controller and begins to run it in the
// group; it does not block.
var table = map[string]func(*Set) error{
	Namespaces:      startNamespaces,
	Garbage:         startGarbage,
	ServiceAccounts: startServiceAccounts,
	ReplicaSets:     startReplicaSets,
	Deployments:     startDeployments,
	Jobs:            startJobs,
}

// Names returns the controllers there are, in alphabetical order.
func Names() []string { return slices.Sorted(maps.Keys(table)) }

// Set is a number of running controllers. Make it with Start, end it with Stop.
type Set struct {
	ctx     context.Context
	cancel  context.CancelFunc
	config  *rest.Config
	client  kubernetes.Interface
	shared  informers.SharedInformerFactory
	running sync.WaitGroup
	started chan struct{} // closed once the informers were started
}

// Start starts the named controllers against a server and returns without waiting for them to have seen its state.
// An unknown name is an error, and so is a server that does not tell the namespace deleter which kinds it has. The
// context covers the start only: when it ends first, Start takes down what it started and returns the context's cause.
// The config is copied.
func Start(ctx context.Context, config *rest.Config, names ...string) (*Set, error) {
	for _, name := range names {
		if table[name] == nil {
			return nil, fmt.Errorf("there is no controller %q: %s are", name, strings.Join(Names(), ", "))
		}
	}
	s := &Set{config: rest.CopyConfig(config), started: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.config.QPS = -1 // the server is ours: its own fairness is limit enough
	s.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return ending{s.ctx, next} })
	client, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return nil, fmt.Errorf("make the controllers' client: %w", err)
	}
	s.client = client
	s.shared = informers.NewSharedInformerFactory(client, 0)
	release := context.AfterFunc(ctx, s.cancel)
	for _, name := range names {
		if err = table[name](s); err != nil {
			err = fmt.Errorf("start the controller %s: %w", name, err)
			break
		}
	}
	if !release() {
		err = context.Cause(ctx)
	}
	if err != nil {
		close(s.started) // the garbage collector waits for it whatever its context says
		s.Stop()
		return nil, err
	}
	s.shared.Start(s.ctx.Done())
	close(s.started)
	return s, nil
}

// WaitForSync returns when the controllers' informers have seen the server's state, or with an error if the context ends
// or syncLimit passes first.
func (s *Set) WaitForSync(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	for kind, synced := range s.shared.WaitForCacheSync(limited.Done()) {
		if !synced {
			return fmt.Errorf("no answer about %s within %v", kind, syncLimit)
		}
	}
	return nil
}

// Stop ends the controllers and waits for them. It may be called more than once.
func (s *Set) Stop() {
	if s == nil {
		return
	}
	s.cancel()
	s.running.Wait()
	s.shared.Shutdown()
}
