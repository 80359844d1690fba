// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// Fence lets writes to an API server pass as long as the term they belong to lasts. It is a layer of the HTTP transport and
// so the last thing before the wire: what waited for a rate limiter, or is sent again after an answer of 429, is judged when
// it is really sent.
//
// A request belongs to the term in its context. Once [Fence.Guard] was called, every request without one belongs to the
// guarded term. Reads, upgrades to a stream, and requests that store nothing or only events always pass. The zero value lets
// everything pass.
type Fence struct {
	guarded atomic.Pointer[Term]
}

// Guard makes t the term of all writes whose context carries none, until the next call. A term that is over goes on
// guarding: that is what keeps a deposed leader silent.
func (f *Fence) Guard(t *Term) { f.guarded.Store(t) }

// Wrap puts the fence in front of next; it has the signature that rest.Config.Wrap takes.
func (f *Fence) Wrap(next http.RoundTripper) http.RoundTripper {
	return &fencedTransport{fence: f, next: next}
}

type fencedTransport struct {
	fence *Fence
	next  http.RoundTripper
}

// WrappedRoundTripper lets client-go look through the fence, for instance to close idle connections.
func (t *fencedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *fencedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	term := t.fence.termOf(req)
	if term == nil {
		return t.next.RoundTrip(req)
	}
	ctx, done, err := term.Begin(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes the body also when it fails
		}
		return nil, err
	}
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		// The transport reports the cancelled context; the caller wants to know why it was.
		if cause := context.Cause(ctx); cause != nil && req.Context().Err() == nil {
			err = cause
		}
		done()
		return nil, err
	}
	// The write is under way until its answer is read: the context must live that long, or reading would fail.
	resp.Body = &closeHook{ReadCloser: resp.Body, done: done}
	return resp, nil
}

// termOf is the term that must be asked, nil if none.
func (f *Fence) termOf(req *http.Request) *Term {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, "":
		return nil
	}
	term := FromContext(req.Context())
	if term == nil {
		term = f.guarded.Load()
	}
	if term == nil || storesNothing(req.URL.Path) || isEvent(req.URL.Path) || req.Header.Get("Upgrade") != "" {
		return nil
	}
	return term
}

// storesNothing tells the reviews by which a server asks who somebody is and what they may do.
func storesNothing(path string) bool {
	return strings.Contains(path, "/apis/authentication.k8s.io/") || strings.Contains(path, "/apis/authorization.k8s.io/")
}

// isEvent tells requests for Events, of the core group or their own: they are flushed after the term, to tell of its end.
func isEvent(path string) bool {
	rest, ok := after(path, "/apis/events.k8s.io/")
	if !ok {
		if _, named := after(path, "/apis/"); named {
			return false
		}
		if rest, ok = after(path, "/api/"); !ok {
			return false
		}
	}
	// version / namespaces / NAMESPACE / events [/ NAME]
	part := strings.Split(rest, "/")
	return len(part) >= 4 && part[1] == "namespaces" && part[3] == "events"
}

func after(path, prefix string) (string, bool) {
	_, rest, ok := strings.Cut(path, prefix)
	return rest, ok
}

type closeHook struct {
	io.ReadCloser
	done func()
}

func (c *closeHook) Close() error {
	err := c.ReadCloser.Close()
	c.done()
	return err
}
