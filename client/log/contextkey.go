// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package log

import (
	"context"

	"github.com/go-logr/logr"
)

// ContextKey returns the key under which logr keeps a logger in a context, for a context that makes its logger when it is first
// asked for it. The value is a logr.Logger.
func ContextKey() any { return contextKey }

// contextKey is found out once: logr does not export it, but asks any context for it.
var contextKey = func() any {
	probe := keyProbe{Context: context.Background()}
	_, _ = logr.FromContext(&probe)
	return probe.key
}()

type keyProbe struct {
	context.Context
	key any
}

func (p *keyProbe) Value(key any) any {
	p.key = key
	return nil
}
