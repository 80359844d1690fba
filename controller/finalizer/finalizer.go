// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package finalizer

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/controller/controllerutil"
)

// Registerer holds finalizers by key.
type Registerer interface {
	// Register adds a finalizer. The key is what stands in
	// metadata.finalizers; each may be registered once.
	Register(key string, f Finalizer) error
}

// Finalizer cleans up before an object goes away.
type Finalizer interface {
	// Finalize cleans up. It is called again after an error, and must do
	// nothing where it has done its work. It may change the object in memory
	// and then says so.
	Finalize(context.Context, client.Object) (Result, error)
}

// Finalizers runs all registered finalizers. It is safe for concurrent use on
// different objects.
type Finalizers interface {
	Registerer

	// Finalize adds the keys of all finalizers to an object that is not being
	// deleted. On one that is, it runs every finalizer whose key the object
	// has, in the order of registration, and removes the keys of those that
	// had no error. The object is changed in memory only; the Result says what
	// the caller has to write. The errors are joined.
	Finalizer
}

// Result says what changed in memory and has to be written.
type Result struct {
	// Updated says that something outside of status changed.
	Updated bool

	// StatusUpdated says that the status changed.
	StatusUpdated bool
}

// NewFinalizers makes an empty Finalizers.
func NewFinalizers() Finalizers { return &finalizers{} }

type entry struct {
	key string
	Finalizer
}

type finalizers struct {
	mu      sync.RWMutex
	entries []entry
}

func (f *finalizers) Register(key string, finalizer Finalizer) error {
	if apiutil.IsNil(finalizer) {
		return fmt.Errorf("finalizer %q is nil", key)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.entries {
		if e.key == key {
			return fmt.Errorf("finalizer %q is registered already", key)
		}
	}
	f.entries = append(f.entries, entry{key, finalizer})
	return nil
}

func (f *finalizers) Finalize(ctx context.Context, obj client.Object) (Result, error) {
	f.mu.RLock()
	entries := f.entries[:len(f.entries):len(f.entries)]
	f.mu.RUnlock()

	var all Result
	var errs []error
	deleting := !obj.GetDeletionTimestamp().IsZero()
	for _, e := range entries {
		if !deleting {
			all.Updated = controllerutil.AddFinalizer(obj, e.key) || all.Updated
			continue
		}
		if !controllerutil.ContainsFinalizer(obj, e.key) {
			continue
		}
		r, err := e.Finalize(ctx, obj)
		all.Updated = all.Updated || r.Updated
		all.StatusUpdated = all.StatusUpdated || r.StatusUpdated
		if err != nil {
			errs = append(errs, fmt.Errorf("finalizer %q: %w", e.key, err))
			continue
		}
		all.Updated = controllerutil.RemoveFinalizer(obj, e.key) || all.Updated
	}
	return all, errors.Join(errs...)
}
