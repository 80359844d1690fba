// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTermBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := newTerm(time.Now(), 10*time.Second, 15*time.Second)
		time.Sleep(9 * time.Second)
		if !term.renew(time.Now().Add(-time.Second)) { // sent a second ago
			t.Fatal("not renewed")
		}
		time.Sleep(9*time.Second - time.Nanosecond)
		writing, done, err := term.Begin(t.Context())
		if err != nil {
			t.Fatalf("a write just before the deadline: %v", err)
		}
		defer done()
		time.Sleep(time.Nanosecond)
		if _, _, err := term.Begin(t.Context()); !errors.Is(err, ErrTermOver) {
			t.Errorf("a write at the deadline: %v", err)
		}
		select {
		case <-term.Over():
		default:
			t.Error("not over at the deadline")
		}
		if term.renew(time.Now()) {
			t.Error("renewed when over")
		}
		time.Sleep(5*time.Second - time.Nanosecond)
		if writing.Err() != nil {
			t.Error("the write was cut before the lease expired")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if writing.Err() == nil || !errors.Is(context.Cause(writing), ErrTermOver) {
			t.Errorf("the write was not cut: %v", context.Cause(writing))
		}
		if n := term.End(); n != 1 {
			t.Errorf("%d writes under way, want 1", n)
		}
	})
}

func TestRenewalMovesTheCutOfWritesUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := newTerm(time.Now(), 10*time.Second, 15*time.Second)
		writing, done, err := term.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			time.Sleep(5 * time.Second)
			if !term.renew(time.Now()) {
				t.Fatal("not renewed")
			}
		}
		synctest.Wait()
		if writing.Err() != nil {
			t.Errorf("a long write was cut in a term that goes on: %v", context.Cause(writing))
		}
		done()
		if n := term.End(); n != 0 {
			t.Errorf("%d writes under way", n)
		}
		if _, _, err := term.Begin(t.Context()); !errors.Is(err, ErrTermOver) {
			t.Errorf("a write after the end: %v", err)
		}
	})
}

// wire is a transport that answers after delay, if the request lives that long, and counts what it was sent.
type wire struct {
	delay time.Duration
	sent  []string
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.sent = append(w.sent, req.Method+" "+req.URL.Path)
	if err := sleep(req.Context(), w.delay); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("{}")), Request: req}, nil
}

func send(t *testing.T, ctx context.Context, rt http.RoundTripper, method, path string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "https://server"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: rt}).Do(req)
	if err != nil {
		return err
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Error(err)
	}
	return resp.Body.Close()
}

func TestFence(t *testing.T) {
	const pods, event, newEvent = "/api/v1/namespaces/n/pods", "/api/v1/namespaces/n/events/x", "/apis/events.k8s.io/v1/namespaces/n/events"
	const widgets = "/apis/example.com/v1/namespaces/n/events" // a kind of a user's, called events
	synctest.Test(t, func(t *testing.T) {
		over := newTerm(time.Now(), 10*time.Second, 15*time.Second)
		over.End()
		lasting := newTerm(time.Now(), 10*time.Second, 15*time.Second)
		defer lasting.End()
		plain := t.Context()
		for _, c := range []struct {
			name         string
			guard        *Term
			ctx          context.Context
			method, path string
			sent         bool
		}{
			{"no term", nil, plain, "POST", pods, true},
			{"guarded by a lasting term", lasting, plain, "POST", pods, true},
			{"guarded by an ended term", over, plain, "POST", pods, false},
			{"put", over, plain, "PUT", pods, false},
			{"patch", over, plain, "PATCH", pods, false},
			{"delete", over, plain, "DELETE", pods, false},
			{"get", over, plain, "GET", pods, true},
			{"below a path of its own", over, plain, "POST", "/cluster/x" + pods, false},
			{"core event", over, plain, "POST", event, true},
			{"event", over, plain, "POST", newEvent, true},
			{"event below a path of its own", over, plain, "POST", "/cluster/x" + newEvent, true},
			{"a user's kind called events", over, plain, "POST", widgets, false},
			{"token review", over, plain, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", true},
			{"access review", over, plain, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", true},
			{"elected only, over", nil, NewContext(plain, over), "POST", pods, false},
			{"elected only, lasting", nil, NewContext(plain, lasting), "POST", pods, true},
			{"the context's term counts", lasting, NewContext(plain, over), "POST", pods, false},
		} {
			f, w := &Fence{}, &wire{}
			f.Guard(c.guard)
			err := send(t, c.ctx, f.Wrap(w), c.method, c.path)
			if sent := len(w.sent) == 1; sent != c.sent || sent != (err == nil) {
				t.Errorf("%s: sent %q, error %v", c.name, w.sent, err)
			}
			if err != nil && !errors.Is(err, ErrTermOver) {
				t.Errorf("%s: %v does not say that the term is over", c.name, err)
			}
		}
		if n := lasting.End(); n != 0 {
			t.Errorf("%d writes under way after all were answered", n)
		}
	})
}

func TestFenceCutsSlowWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, w := &Fence{}, &wire{delay: time.Minute}
		term := newTerm(time.Now(), 10*time.Second, 15*time.Second)
		f.Guard(term)
		began := time.Now()
		err := send(t, t.Context(), f.Wrap(w), "POST", "/api/v1/namespaces/n/pods")
		if !errors.Is(err, ErrTermOver) {
			t.Errorf("cut write: %v", err)
		}
		if d := time.Since(began); d != 15*time.Second {
			t.Errorf("cut after %s", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		term = newTerm(time.Now(), 10*time.Second, 15*time.Second)
		defer term.End()
		f.Guard(term)
		if err := send(t, ctx, f.Wrap(w), "POST", "/api/v1/namespaces/n/pods"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write that its caller gave up: %v", err)
		}
		if n := term.End(); n != 0 {
			t.Errorf("%d writes under way", n)
		}
	})
}
