// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package log

import (
	"context"

	"github.com/go-logr/logr"
)

// promise is what Log stands on.
var promise = newRoot(warnUnset)

// Log is the root of all loggers that are made before the program has chosen one. It writes nothing until SetLogger.
var Log = logr.New(&deferredSink{root: promise})

// SetLogger names the logger that Log, and every logger derived from it before or after, writes to. Only the first call
// counts: later ones change nothing, so that a library cannot take the log away from the program. A zero Logger
// discards everything. It may be called at any time, from any goroutine.
func SetLogger(l logr.Logger) {
	promise.fulfil(l.GetSink())
}

// FromContext gives the logger that IntoContext (or logr.NewContext) has put into ctx, or Log if there is none, with
// the given key and value pairs added. A nil context counts as an empty one.
func FromContext(ctx context.Context, keysAndValues ...any) logr.Logger {
	l := Log
	if ctx != nil {
		if found, err := logr.FromContext(ctx); err == nil {
			l = found
		}
	}
	if len(keysAndValues) == 0 {
		return l
	}
	return l.WithValues(keysAndValues...)
}

// IntoContext gives a context derived from ctx in which FromContext finds l.
func IntoContext(ctx context.Context, l logr.Logger) context.Context {
	return logr.NewContext(ctx, l)
}
