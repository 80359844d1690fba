// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/wherry-dev/wherry/test/apiserver/controllers"
)

// controllerNames returns the controllers that run beside the server.
func (o Options) controllerNames() []string {
	var names []string
	for _, c := range []struct {
		name string
		off  bool
	}{
		{controllers.Namespaces, o.NoNamespaceDeleter},
		{controllers.Garbage, o.NoGarbageCollector},
		{controllers.ServiceAccounts, o.NoServiceAccounts},
	} {
		if !c.off {
			names = append(names, c.name)
		}
	}
	return names
}

// startControllers starts the controllers as the server's own user, unless the server is stopping or the context ends
// first. The caller holds restoring.
func (s *Server) startControllers(ctx context.Context) error {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	release := context.AfterFunc(s.halting, func() { cancel(errStopped) })
	defer release()
	return sheltered(func() (err error) {
		s.controllers, err = controllers.Start(limited, s.loopback, s.parts.options.controllerNames()...)
		return err
	})
}
