// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// faults stands between a client and the server. It holds watches, cuts them, makes them start over, and loses
// the answers of writes.
type faults struct {
	next http.RoundTripper

	mu      sync.Mutex
	held    chan struct{} // nil while watches run freely
	watches map[*heldBody]bool
	expire  int           // so many watches to come are told that their version is too old
	late    time.Duration // each read of a watch comes later by a part of this, each by another
}

func newFaults() *faults { return &faults{watches: map[*heldBody]bool{}} }

// heldWatches returns a config whose watches can be held back.
func heldWatches(cfg *rest.Config) (*rest.Config, *faults) {
	f := newFaults()
	out := rest.CopyConfig(cfg)
	out.QPS = -1
	out.Wrap(f.wrap)
	return out, f
}

func (f *faults) wrap(next http.RoundTripper) http.RoundTripper {
	f.next = next
	return f
}

// loseAnswer marks a request whose answer gets lost.
type loseAnswer struct{}

var errLost = errors.New("the answer was lost")

func (f *faults) RoundTrip(req *http.Request) (*http.Response, error) {
	watch := strings.Contains(req.URL.RawQuery, "watch=")
	if watch && strings.Contains(req.URL.RawQuery, "resourceVersion=") && !strings.Contains(req.URL.RawQuery, "sendInitialEvents") && f.takeExpiry() {
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`
		return &http.Response{StatusCode: 410, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: req}, nil
	}
	res, err := f.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if req.Method != http.MethodGet && req.Context().Value(loseAnswer{}) != nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return nil, errLost
	}
	if watch {
		b := &heldBody{ReadCloser: res.Body, faults: f, closed: make(chan struct{})}
		f.mu.Lock()
		f.watches[b] = true
		f.mu.Unlock()
		res.Body = b
	}
	return res, nil
}

func (f *faults) takeExpiry() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.expire == 0 {
		return false
	}
	f.expire--
	return true
}

// hold keeps back what watches say; release lets it through.
func (f *faults) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held = make(chan struct{})
	}
}

// lag makes what watches say come late, by up to d, each by itself, so that one is ahead of the other.
func (f *faults) lag(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = d
}

func (f *faults) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = 0
	if f.held != nil {
		close(f.held)
		f.held = nil
	}
}

// cut ends all watches. With expire, each must list anew.
func (f *faults) cut(expire bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if expire {
		f.expire = len(f.watches)
	}
	for b := range f.watches {
		go func() { _ = b.Close() }()
	}
}

// heldBody is the body of a watch.
type heldBody struct {
	io.ReadCloser
	faults *faults
	once   sync.Once
	closed chan struct{}
}

// Read hands on what was read, unless watches are held: the data is there but nobody sees it.
func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.faults.mu.Lock()
	held, late := b.faults.held, b.faults.late
	b.faults.mu.Unlock()
	if late > 0 {
		select {
		case <-time.After(rand.N(late)):
		case <-b.closed:
			return 0, io.ErrUnexpectedEOF
		}
	}
	if held != nil {
		select {
		case <-held:
		case <-b.closed:
			return 0, io.ErrUnexpectedEOF
		}
	}
	return n, err
}

func (b *heldBody) Close() error {
	b.once.Do(func() {
		close(b.closed)
		b.faults.mu.Lock()
		delete(b.faults.watches, b)
		b.faults.mu.Unlock()
	})
	return b.ReadCloser.Close()
}
