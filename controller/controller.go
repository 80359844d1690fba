// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"

	"github.com/wherry-dev/wherry/client/apiutil"
	"github.com/wherry-dev/wherry/controller/reconcile"
	"github.com/wherry-dev/wherry/controller/source"
	"github.com/wherry-dev/wherry/manager"
)

// Controller reconciles objects by namespace and name.
type Controller = TypedController[reconcile.Request]

// TypedController gives the keys that its sources queue to a reconciler. Its
// methods are safe for concurrent use.
type TypedController[request comparable] interface {
	reconcile.TypedReconciler[request]

	// Watch adds a source. Before Start it only remembers it, after Start it
	// starts it at once and does not wait for its sync. It fails if the source
	// is not made properly.
	Watch(src source.TypedSource[request]) error

	// Start runs the controller until the context ends. It returns when all
	// workers have finished and all sources have let go, with an error if a
	// source could not be started or did not sync in time. Once it has
	// returned the controller may be started again.
	Start(ctx context.Context) error

	// GetLogger returns the controller's logger, without any key.
	GetLogger() logr.Logger
}

// New makes a controller and adds it to the manager, which starts it. The
// name must be unique in the manager.
func New(name string, mgr manager.Manager, options Options) (Controller, error) {
	return NewTyped(name, mgr, options)
}

// NewTyped is New for keys of any comparable type.
func NewTyped[request comparable](name string, mgr manager.Manager, options TypedOptions[request]) (TypedController[request], error) {
	if apiutil.IsNil(mgr) {
		return nil, fmt.Errorf("controller %q: the manager is nil", name)
	}
	options.DefaultFromConfig(mgr.GetControllerOptions())
	if options.Logger.GetSink() == nil {
		options.Logger = mgr.GetLogger()
	}
	c, err := newController(name, options)
	if err != nil {
		return nil, err
	}
	if options.SkipNameValidation == nil || !*options.SkipNameValidation {
		c.claim = func() (release func(), err error) { return claimName(mgr, name) }
		if c.release, err = c.claim(); err != nil {
			return nil, err
		}
	}
	if err := mgr.Add(c); err != nil {
		c.release()
		return nil, err
	}
	return c, nil
}

// NewUnmanaged makes a controller that the caller starts.
func NewUnmanaged(name string, options Options) (Controller, error) {
	return NewTypedUnmanaged(name, options)
}

// NewTypedUnmanaged is NewUnmanaged for keys of any comparable type. The name
// is not checked against others, as there is no manager to be unique in.
func NewTypedUnmanaged[request comparable](name string, options TypedOptions[request]) (TypedController[request], error) {
	return newController(name, options)
}

func newController[request comparable](name string, options TypedOptions[request]) (*controller[request], error) {
	if name == "" {
		return nil, errors.New("a controller needs a name")
	}
	if err := options.settle(name); err != nil {
		return nil, fmt.Errorf("controller %q: %w", name, err)
	}
	m := metricsFor(name)
	c := &controller[request]{
		name:       name,
		options:    options,
		log:        options.controllerLogger(),
		metrics:    m,
		outcomes:   newOutcomes(options.RetryPolicies, m),
		release:    func() {},
		reconciler: options.Reconciler,
	}
	return c, nil
}
