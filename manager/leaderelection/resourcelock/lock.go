// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package resourcelock

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/wherry-dev/wherry/manager/leaderelection"
)

// New returns a lock that is lock underneath. The result belongs to one elector, as lock does.
func New(lock resourcelock.Interface) leaderelection.Lock { return &adapter{lock} }

type adapter struct{ resourcelock.Interface }

func (a *adapter) Get(ctx context.Context) (*leaderelection.Record, error) {
	r, _, err := a.Interface.Get(ctx)
	if err != nil {
		return nil, err
	}
	return &leaderelection.Record{
		HolderIdentity:       r.HolderIdentity,
		LeaseDurationSeconds: r.LeaseDurationSeconds,
		AcquireTime:          r.AcquireTime.Time,
		RenewTime:            r.RenewTime.Time,
		LeaderTransitions:    r.LeaderTransitions,
		Strategy:             r.Strategy,
		PreferredHolder:      r.PreferredHolder,
	}, nil
}

func (a *adapter) Create(ctx context.Context, r leaderelection.Record) error {
	return a.Interface.Create(ctx, record(r))
}

func (a *adapter) Update(ctx context.Context, r leaderelection.Record) error {
	return a.Interface.Update(ctx, record(r))
}

func record(r leaderelection.Record) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{
		HolderIdentity:       r.HolderIdentity,
		LeaseDurationSeconds: r.LeaseDurationSeconds,
		AcquireTime:          metav1.NewTime(r.AcquireTime),
		RenewTime:            metav1.NewTime(r.RenewTime),
		LeaderTransitions:    r.LeaderTransitions,
		Strategy:             r.Strategy,
		PreferredHolder:      r.PreferredHolder,
	}
}
