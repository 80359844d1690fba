// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"io"
	"net/http"
)

// ending is a transport whose requests end with a context, whatever context their makers hand over. Discovery takes none
// in much of Kubernetes' code and asks twice for up to 32 seconds each: a stop would wait for a minute.
type ending struct {
	ctx  context.Context
	next http.RoundTripper
}

func (e ending) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	forget := context.AfterFunc(e.ctx, func() { cancel(context.Cause(e.ctx)) })
	release := func() {
		forget()
		cancel(nil)
	}
	answer, err := e.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		release()
		return nil, err
	}
	answer.Body = &body{answer.Body, release}
	return answer, nil
}

// body releases what its request holds once it is closed.
type body struct {
	io.ReadCloser
	release func()
}

func (b *body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
