// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import "context"

// Handler answers requests. It is called from many goroutines at once.
type Handler interface {
	// Handle answers one request. ctx ends when the API server hangs up.
	Handle(ctx context.Context, req Request) Response
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(context.Context, Request) Response

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, req Request) Response { return f(ctx, req) }
