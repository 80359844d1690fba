// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"errors"

	"github.com/google/uuid"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/cluster/recorder"
	"github.com/wherry-dev/wherry/manager/leaderelection"
)

// errBlocked is what a blocked lock answers.
var errBlocked = errors.New("leader election is blocked by the test")

// ControllableResourceLockInterface is a lock that a test can take out of service.
type ControllableResourceLockInterface interface {
	leaderelection.Lock

	// BlockLeaderElection makes every call fail: nobody is elected, and who leads loses the lease.
	BlockLeaderElection()

	// UnblockLeaderElection ends that.
	UnblockLeaderElection()
}

// NewResourceLock returns a lock on a record of its own, so its only candidate is elected at once. It is a
// [ControllableResourceLockInterface]. The arguments do not matter.
func NewResourceLock(_ *rest.Config, _ recorder.Provider, _ leaderelection.Options) (leaderelection.Lock, error) {
	return &resourceLock{(&Board{}).Lock("fake_" + uuid.NewString())}, nil
}

type resourceLock struct{ *BoardLock }

var _ ControllableResourceLockInterface = (*resourceLock)(nil)

func (l *resourceLock) BlockLeaderElection()   { l.Fail(errBlocked) }
func (l *resourceLock) UnblockLeaderElection() { l.Fail(nil) }
