// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/wherry-dev/wherry/client/log"
)

// warningHandler gives the handler of the server's warnings that a config asks for.
func warningHandler(config *rest.Config) rest.WarningHandlerWithContext {
	switch {
	case config.WarningHandlerWithContext != nil:
		return config.WarningHandlerWithContext
	case config.WarningHandler != nil:
		return plainWarnings{config.WarningHandler}
	default:
		return log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{})
	}
}

// plainWarnings makes a handler of the older kind one of the newer.
type plainWarnings struct{ rest.WarningHandler }

func (p plainWarnings) HandleWarningHeaderWithContext(_ context.Context, code int, agent, text string) {
	p.HandleWarningHeader(code, agent, text)
}

// loggedWarnings gives calls whose context has no logger one of the client.
type loggedWarnings struct {
	rest.WarningHandlerWithContext
	log logr.Logger
}

func (l loggedWarnings) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	if _, err := logr.FromContext(ctx); err != nil {
		ctx = log.IntoContext(ctx, l.log)
	}
	l.WarningHandlerWithContext.HandleWarningHeaderWithContext(ctx, code, agent, text)
}
