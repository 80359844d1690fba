// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
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

// startControllers starts the controllers as the server's own user, unless the server is stopping.
func (s *Server) startControllers() error {
	select {
	case <-s.halt:
		return errStopped
	default:
	}
	var err error
	s.controllers, err = controllers.Start(s.loopback, s.parts.options.controllerNames()...)
	return err
}
