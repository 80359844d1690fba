// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"sync"

	"github.com/go-logr/logr"

	"github.com/wherry-dev/wherry/client/log"
)

// asked is the context of one request. It keeps the request, and makes the logger when somebody asks for it: most handlers
// never log, and a logger costs more than the rest of the context.
type asked struct {
	context.Context
	envelope
	webhook *Webhook

	once   sync.Once
	logger any // a logr.Logger, boxed once
}

// logKey is looked up once.
var logKey = log.ContextKey()

// Value implements context.Context.
func (a *asked) Value(key any) any {
	switch key {
	case logKey:
		a.once.Do(func() { a.logger = a.webhook.logger(&a.Request) })
		return a.logger
	case requestKey{}:
		return &a.Request
	}
	return a.Context.Value(key)
}

// log is the request's logger.
func (a *asked) log() logr.Logger { return a.Value(logKey).(logr.Logger) }
