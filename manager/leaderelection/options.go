// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/cluster/recorder"
)

// leasesResource is the one kind of lock there is.
const leasesResource = "leases"

// namespaceFile is where a pod finds its own namespace; a variable for tests.
var namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Options say which lock candidates contend for.
type Options struct {
	// LeaderElection switches election on. Without it there is no lock.
	LeaderElection bool

	// LeaderElectionResourceLock is the kind of object that is the lock. "" and "leases" mean a Lease; nothing else is known.
	LeaderElectionResourceLock string

	// LeaderElectionNamespace is the lock's namespace. "" means the one this pod runs in.
	LeaderElectionNamespace string

	// LeaderElectionID is the lock's name. It must be set.
	LeaderElectionID string

	// RenewDeadline is the one of the election. A single request for the lock may take half of it, but at least a second. Zero
	// means 10 s.
	RenewDeadline time.Duration

	// LeaderLabels are put on the lease by whoever writes it; other labels stay.
	LeaderLabels map[string]string
}

// NewResourceLock returns this process's way to the lock that options describe, or nil without an error if
// options.LeaderElection is off. It makes no request. recorderProvider may be nil: then no events tell who leads.
func NewResourceLock(config *rest.Config, recorderProvider recorder.Provider, options Options) (Lock, error) {
	if !options.LeaderElection {
		return nil, nil
	}
	switch options.LeaderElectionResourceLock {
	case "", leasesResource:
	default:
		return nil, fmt.Errorf("leader election: unknown resource lock %q, only %q is there", options.LeaderElectionResourceLock, leasesResource)
	}
	if options.LeaderElectionID == "" {
		return nil, errors.New("leader election: LeaderElectionID must be configured")
	}
	namespace := options.LeaderElectionNamespace
	if namespace == "" {
		var err error
		if namespace, err = podNamespace(); err != nil {
			return nil, err
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	client, err := newLeaseClient(rest.AddUserAgent(rest.CopyConfig(config), "leader-election"))
	if err != nil {
		return nil, fmt.Errorf("leader election: make a client: %w", err)
	}
	deadline := options.RenewDeadline
	if deadline == 0 {
		deadline = 10 * time.Second
	}
	lock := &leaseLock{
		client: client, namespace: namespace, name: options.LeaderElectionID,
		identity: host + "_" + uuid.NewString(),
		labels:   options.LeaderLabels,
		timeout:  max(time.Second, deadline/2),
	}
	if recorderProvider != nil {
		lock.recorder = recorderProvider.GetEventRecorderFor(lock.identity)
	}
	return lock, nil
}

func podNamespace() (string, error) {
	b, err := os.ReadFile(namespaceFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("leader election: not running in a cluster (no %s), please set LeaderElectionNamespace", namespaceFile)
	}
	if err != nil {
		return "", fmt.Errorf("leader election: find the namespace: %w", err)
	}
	namespace := strings.TrimSpace(string(b))
	if namespace == "" {
		return "", fmt.Errorf("leader election: %s is empty, please set LeaderElectionNamespace", namespaceFile)
	}
	return namespace, nil
}
