// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package log

import (
	"context"
	"sync"
)

const (
	// warningCode is the only code of a Warning header that the API server gives meaning to.
	warningCode = 299

	// maxSeenWarnings bounds what de-duplication remembers. A server that puts a name or a number into each text would
	// otherwise fill the memory; above the bound the logger forgets everything and begins anew.
	maxSeenWarnings = 4096
)

// KubeAPIWarningLoggerOptions says how a KubeAPIWarningLogger treats warnings.
type KubeAPIWarningLoggerOptions struct {
	// Deduplicate logs each distinct text once instead of each time it arrives.
	Deduplicate bool
}

// KubeAPIWarningLogger writes the warnings that an API server sends beside its answers (a deprecated version, an unknown
// field) to the logger of the request's context. It is safe for concurrent use.
type KubeAPIWarningLogger struct {
	deduplicate bool

	mu   sync.Mutex
	seen map[string]struct{} // guarded by mu
}

// NewKubeAPIWarningLogger gives a logger for client-go's rest.Config.WarningHandlerWithContext.
func NewKubeAPIWarningLogger(opts KubeAPIWarningLoggerOptions) *KubeAPIWarningLogger {
	return &KubeAPIWarningLogger{deduplicate: opts.Deduplicate, seen: map[string]struct{}{}}
}

// HandleWarningHeaderWithContext logs text at info level. Codes other than 299 and empty texts are ignored.
func (w *KubeAPIWarningLogger) HandleWarningHeaderWithContext(ctx context.Context, code int, _ string, text string) {
	if code != warningCode || text == "" || !w.first(text) {
		return
	}
	FromContext(ctx).WithName("KubeAPIWarningLogger").Info(text)
}

// first tells whether text is to be logged, and remembers it.
func (w *KubeAPIWarningLogger) first(text string) bool {
	if !w.deduplicate {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.seen[text]; ok {
		return false
	}
	if w.seen == nil || len(w.seen) >= maxSeenWarnings {
		w.seen = map[string]struct{}{}
	}
	w.seen[text] = struct{}{}
	return true
}
