// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/wherry-dev/wherry/client/apiutil"
)

const podPath = "/api/v1/namespaces/a/pods/p"

func retryReply(code int, seconds string) *reply {
	r := failure(code, metav1.StatusReasonTooManyRequests, "slow down")
	r.header.Set("Retry-After", seconds)
	return r
}

// inTurn answers one request after the other.
func (s *server) inTurn(request string, replies ...*reply) {
	s.answers[request] = func(*http.Request, []byte) *reply {
		s.mu.Lock()
		defer s.mu.Unlock()
		r := replies[0]
		if len(replies) > 1 {
			replies = replies[1:]
		}
		return r
	}
}

// A 429 with Retry-After is sent again after that time, writes too; in the end it is the server's error.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		c := s.client(Options{})
		s.inTurn("PUT "+podPath, retryReply(429, "2"), retryReply(503, "1"), protobuf(200, pod("p")))
		start, obj := time.Now(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
		if err := c.Update(t.Context(), obj); err != nil || obj.ResourceVersion != "7" {
			t.Fatalf("%v, %v", obj, err)
		}
		if took := time.Since(start); took != 3*time.Second || len(s.asked()) != 3 {
			t.Errorf("took %v", took)
		}
		s.inTurn("GET "+podPath, retryReply(429, "1"))
		err := c.Get(t.Context(), ObjectKeyFromObject(obj), obj)
		if !apierrors.IsTooManyRequests(err) || len(s.asked()) != maxAttempts {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		err = c.Get(ctx, ObjectKeyFromObject(obj), obj)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `get Pod "a/p"`) {
			t.Errorf("got %v", err)
		}
		s.asked()
		s.inTurn("GET "+podPath, failure(500, metav1.StatusReasonInternalError, "broken"))
		if err := c.Get(t.Context(), ObjectKeyFromObject(obj), obj); !apierrors.IsInternalError(err) || len(s.asked()) != 1 {
			t.Errorf("a 500 without Retry-After is not sent again: %v", err)
		}
	})
}

// What a gate is told of writes that did not end well.
func TestOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
		refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		for name, test := range map[string]struct {
			replies       []*reply
			err           error
			sent, unknown bool
		}{
			"conflict":               {[]*reply{failure(409, metav1.StatusReasonConflict, "x")}, nil, true, false},
			"internal error":         {[]*reply{failure(500, metav1.StatusReasonInternalError, "x")}, nil, true, true},
			"conflict after a 503":   {[]*reply{retryReply(503, "1"), failure(409, metav1.StatusReasonConflict, "x")}, nil, true, true},
			"conflict after a 429":   {[]*reply{retryReply(429, "1"), failure(409, metav1.StatusReasonConflict, "x")}, nil, true, false},
			"success after a 503":    {[]*reply{retryReply(503, "1"), protobuf(200, pod("p"))}, nil, true, false},
			"connection lost":        {nil, lost, true, true},
			"connection refused":     {nil, refused, false, false},
			"an error of a proxy":    {[]*reply{{code: 502, header: http.Header{"Content-Type": {"text/html"}}, body: []byte("<bad gateway>")}}, nil, true, true},
			"no permission":          {[]*reply{failure(403, metav1.StatusReasonForbidden, "x")}, nil, true, false},
			"success of the Status":  {[]*reply{object(200, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})}, nil, true, false},
			"success is no doubt":    {[]*reply{object(200, pod("p"))}, nil, true, false},
			"a redirect is no proof": {[]*reply{{code: 304, header: http.Header{}}}, nil, true, false},
		} {
			s, gate := newServer(t), &testGate{}
			s.inTurn("PUT "+podPath, test.replies...)
			config := s.config()
			config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if test.err != nil && r.Method == http.MethodPut {
						return nil, test.err
					}
					return rt.RoundTrip(r)
				})
			})
			c, err := New(config, Options{Gates: []WriteGate{gate}})
			if err != nil {
				t.Fatal(err)
			}
			err = c.Update(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}})
			if len(gate.outcomes) != 1 {
				t.Fatalf("%s: %d outcomes", name, len(gate.outcomes))
			}
			if o := gate.outcomes[0]; o.Sent != test.sent || o.Unknown != test.unknown || (o.Err != nil) != (err != nil) {
				t.Errorf("%s: %+v, caller gets %v", name, o, err)
			}
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A read is sent again when the connection broke, a write never.
func TestBrokenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.on("GET "+podPath, protobuf(200, pod("p")))
		var mu sync.Mutex
		broken := map[string]int{"GET": 2, "PUT": 1}
		config := s.config()
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				if strings.HasSuffix(r.URL.Path, "/p") && broken[r.Method] > 0 {
					broken[r.Method]--
					return nil, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
				}
				return rt.RoundTrip(r)
			})
		})
		c, err := New(config, Options{})
		if err != nil {
			t.Fatal(err)
		}
		obj := &corev1.Pod{}
		if err := c.Get(t.Context(), ObjectKey{Namespace: "a", Name: "p"}, obj); err != nil {
			t.Errorf("get: %v", err)
		}
		if err := c.Update(t.Context(), obj); !errors.Is(err, syscall.ECONNRESET) || !strings.Contains(err.Error(), `update Pod "a/p"`) {
			t.Errorf("update: %v", err)
		}
	})
}

// An answer that ends too early is an error, not half an object.
func TestTruncatedAnswer(t *testing.T) {
	s := newServer(t)
	whole := protobuf(200, pod("p"))
	s.on("GET "+podPath, &reply{code: 200, header: whole.header, stream: io.NopCloser(io.MultiReader(strings.NewReader(string(whole.body[:20])), brokenReader{}))})
	err := s.client(Options{}).Get(t.Context(), ObjectKey{Namespace: "a", Name: "p"}, &corev1.Pod{})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	for _, body := range []string{"k8s\x00\x0a", "k8s\x00\x0a\xff\x01", "k8s\x00\x12\x05ab", "{\"kind\":", "k8s\x00\x12\x03abc"} {
		s.on("GET "+podPath, &reply{code: 200, header: whole.header, body: []byte(body)})
		if err := s.client(Options{}).Get(t.Context(), ObjectKey{Namespace: "a", Name: "p"}, &corev1.Pod{}); err == nil {
			t.Errorf("%q was taken for an object", body)
		}
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestUnreachableServer(t *testing.T) {
	var dials atomic.Int64
	config := &rest.Config{Host: "https://server.test", Dial: func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}}
	c, err := New(config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Get(t.Context(), ObjectKey{Namespace: "a", Name: "p"}, &corev1.Pod{})
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), `get Pod "a/p"`) || dials.Load() == 0 {
		t.Errorf("got %v", err)
	}
}

func TestContexts(t *testing.T) {
	s := newServer(t)
	c := s.client(Options{})
	reason := errors.New("the term is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	err := c.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}})
	if !errors.Is(err, reason) || len(s.asked()) != 0 {
		t.Errorf("got %v", err)
	}
	// Cancelled on the way: both the reason and the context's own error are found.
	s.on("GET /api/v1/nodes/n", &reply{code: 200})
	config := s.config()
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/api/v1/nodes/n" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return rt.RoundTrip(r)
		})
	})
	if c, err = NewWithWatch(config, Options{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancelCause(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{}))
	time.AfterFunc(time.Millisecond, func() { cancel(reason) })
	if err := c.Get(ctx, ObjectKey{Name: "n"}, &corev1.Node{}); !errors.Is(err, reason) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestContextEndsWhileThrottled: the reason is found there too. TestContexts met it by chance, on a busy machine.
func TestContextEndsWhileThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		config := s.config()
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(0.01, 1)
		c, err := New(config, Options{})
		if err != nil {
			t.Fatal(err)
		}
		reason := errors.New("the term is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(reason) })
		for err == nil { // the first one has a token
			err = c.Get(ctx, ObjectKey{Namespace: "a", Name: "p"}, &corev1.Pod{})
			if apierrors.IsNotFound(err) {
				err = nil
			}
		}
		if !errors.Is(err, reason) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "rate limit") {
			t.Errorf("got %v", err)
		}
	})
}

func TestLimits(t *testing.T) {
	for name, test := range map[string]struct {
		config rest.Config
		limit  float32 // 0 means none
	}{
		"default":  {rest.Config{}, rest.DefaultQPS},
		"switched": {rest.Config{QPS: -1}, 0},
		"figures":  {rest.Config{QPS: 50, Burst: 100}, 50},
		"own":      {rest.Config{QPS: 1, RateLimiter: flowcontrol.NewTokenBucketRateLimiter(77, 1)}, 77},
	} {
		make := limiterOf(&test.config)
		switch {
		case test.limit == 0 && make != nil:
			t.Errorf("%s: limited", name)
		case test.limit != 0 && (make == nil || make().QPS() != test.limit):
			t.Errorf("%s: not limited to %v", name, test.limit)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.on("GET "+podPath, protobuf(200, pod("p")))
		config := s.config()
		config.QPS, config.Burst = 1, 1
		c, err := New(config, Options{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 3 {
			if err := c.Get(t.Context(), ObjectKey{Namespace: "a", Name: "p"}, &corev1.Pod{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("3 requests at 1 a second took %v", took)
		}
	})
}

type warningRecorder struct{ texts []string }

func (w *warningRecorder) HandleWarningHeader(_ int, _ string, text string) {
	w.texts = append(w.texts, text)
}

func TestWarnings(t *testing.T) {
	s := newServer(t)
	r := protobuf(200, pod("p"))
	r.header.Set("Warning", `299 - "pods are old-fashioned"`)
	s.on("GET "+podPath, r)
	config, recorder := s.config(), &warningRecorder{}
	config.WarningHandler = recorder
	c, err := New(config, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Get(t.Context(), ObjectKey{Namespace: "a", Name: "p"}, &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(recorder.texts) != 2 || recorder.texts[0] != "pods are old-fashioned" {
		t.Errorf("got %q", recorder.texts)
	}
}

// counts stands for the metrics of a program, which count under client-go's names.
type counts struct {
	mu   sync.Mutex
	seen []string
}

func (c *counts) Increment(_ context.Context, code, method, host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, code+" "+method+" "+host)
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, c := metrics.RequestResult, &counts{}
		metrics.RequestResult = c
		defer func() { metrics.RequestResult = before }()
		s := newServer(t)
		s.inTurn("PUT "+podPath, retryReply(429, "1"), protobuf(200, pod("p")))
		config := s.config()
		mapper, err := apiutil.NewDynamicRESTMapper(config, &http.Client{Transport: s})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := mapper.RESTMapping(schema.GroupKind{Kind: "Pod"}, "v1"); err != nil {
			t.Fatal(err)
		}
		c.seen = nil
		if err := s.client(Options{Mapper: mapper}).Update(t.Context(), pod("p")); err != nil {
			t.Fatal(err)
		}
		if want := []string{"429 PUT server.test", "200 PUT server.test"}; !slices.Equal(c.seen, want) {
			t.Errorf("counted %q, want %q", c.seen, want)
		}
	})
}

// Without a handler in the config, warnings go to the logger of the call's context, or else to that of the options.
func TestWarningsAreLogged(t *testing.T) {
	s := newServer(t)
	r := protobuf(200, pod("p"))
	r.header.Set("Warning", `299 - "pods are old-fashioned"`)
	s.on("GET "+podPath, r)
	var own, ofCall []string
	logger := func(lines *[]string) logr.Logger {
		return funcr.New(func(_, args string) { *lines = append(*lines, args) }, funcr.Options{})
	}
	c := s.client(Options{Log: logger(&own)})
	for _, ctx := range []context.Context{t.Context(), logr.NewContext(t.Context(), logger(&ofCall))} {
		if err := c.Get(ctx, ObjectKey{Namespace: "a", Name: "p"}, &corev1.Pod{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, lines := range map[string][]string{"options": own, "context": ofCall} {
		if len(lines) != 1 || !strings.Contains(lines[0], "pods are old-fashioned") {
			t.Errorf("logged to the logger of the %s: %q", name, lines)
		}
	}
}
