// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// snapshotsPath is where the embedded server takes snapshots.
const snapshotsPath = "/wherry/snapshots"

// Snapshot is all that an embedded server held at one moment: every object of
// every kind, CRDs and webhooks included. It is of use for that server only, until
// Stop.
type Snapshot struct {
	// Revision is the resourceVersion of that moment.
	Revision int64

	name  string
	admin *rest.Config // of the server it was taken of
}

// Snapshot takes a snapshot, which costs microseconds and, from then on, the
// memory of what is changed. A server keeps at most 1,000; Snapshot.Forget gives
// one up. ctx bounds the request.
//
// One snapshot after Start and a Restore after each test give every test the
// same server, without a start each:
//
//	clean, err := env.Snapshot(ctx)
//	…
//	t.Cleanup(func() { err := env.Restore(context.Background(), clean) … })
//
// Only the embedded server takes snapshots: with a real kube-apiserver or an
// existing cluster it is an error. controller-runtime has nothing like it.
func (e *Environment) Snapshot(ctx context.Context) (*Snapshot, error) {
	admin, err := e.embedded()
	if err != nil {
		return nil, fmt.Errorf("envtest: take a snapshot: %w", err)
	}
	var answer struct {
		Name     string
		Revision int64
	}
	if err := ask(ctx, admin, http.MethodPost, snapshotsPath, nil, &answer); err != nil {
		return nil, fmt.Errorf("envtest: take a snapshot: %w", err)
	}
	return &Snapshot{Revision: answer.Revision, name: answer.Name, admin: admin}, nil
}

// Restore makes the server hold again what it held when the snapshot was taken,
// and returns when the server itself goes by that. The snapshot can be restored
// again. ctx bounds the wait, not the change.
//
// What differs is written like any other change: what was made since is deleted,
// finalizers or not, what was changed is changed back, what was deleted is created
// with the UID it had, each at a new resourceVersion. So watches go on, and the
// caches of a running manager see ordinary events: a moment later their reads equal
// the restored state, and its controllers reconcile what changed. What they do then
// is their business, also if it undoes the restored state: for a test that must not
// see it, stop the manager first. A client's reads without a cache see the restored
// state at once.
func (e *Environment) Restore(ctx context.Context, s *Snapshot) error {
	admin, err := e.embedded()
	if err == nil && s.admin != admin {
		err = errors.New("it is of a server that was stopped; take one after each Start")
	}
	if err == nil {
		err = ask(ctx, admin, http.MethodPost, snapshotsPath+"/"+s.name+"/restore", nil, nil)
	}
	if err != nil {
		return fmt.Errorf("envtest: restore the snapshot of revision %d: %w", s.Revision, err)
	}
	return nil
}

// Forget has the server give up the snapshot and the memory it holds. It is
// needed only by tests that take very many.
func (s *Snapshot) Forget(ctx context.Context) error {
	if err := ask(ctx, s.admin, http.MethodDelete, snapshotsPath+"/"+s.name, nil, nil); err != nil {
		return fmt.Errorf("envtest: forget the snapshot of revision %d: %w", s.Revision, err)
	}
	return nil
}

// embedded returns how the embedded server's administrator reaches it.
func (e *Environment) embedded() (*rest.Config, error) {
	switch {
	case !e.started:
		return nil, errors.New("this Environment does not run; call Start before")
	case e.ControlPlane.GetAPIServer().admin == nil:
		return nil, errors.New("only the embedded API server can; leave out UseExistingCluster and the paths of real programs")
	}
	return e.ControlPlane.APIServer.admin, nil
}
