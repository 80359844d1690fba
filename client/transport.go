// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// maxAttempts is how often one call is sent at most, the first time included. A call is sent again if the server asks
	// for it by Retry-After with a 429 or 5xx, and a read also if the connection broke.
	maxAttempts = 11
	// brokenConnectionDelay is the pause before a read is sent again after the connection broke.
	brokenConnectionDelay = time.Second
	// maxHintedBuffer is the most that is allocated for an answer because its header says that it is so long.
	maxHintedBuffer = 16 << 20
)

// transport sends requests to one server and reads the answers as they come. It does what a rest.RESTClient does, with the
// same metrics and the same rules for sending again, but without its detours over templates and codecs: the answer is
// decoded once, by the call's own codec, and gates can have it as it came.
type transport struct {
	client  *http.Client
	base    url.URL // Path without a slash at its end
	timeout string  // of the HTTP client, as a parameter; empty if there is none
	warn    rest.WarningHandlerWithContext
	// newLimiter makes the limiter of one resource. Nil means no limit.
	newLimiter func() flowcontrol.RateLimiter
}

func newTransport(config *rest.Config, httpClient *http.Client) (*transport, error) {
	bare := rest.CopyConfig(config)
	bare.APIPath, bare.GroupVersion = "", &schema.GroupVersion{}
	base, _, err := rest.DefaultServerUrlFor(bare)
	if err != nil {
		return nil, fmt.Errorf("the config's host %q: %w", config.Host, err)
	}
	t := &transport{client: httpClient, base: *base, warn: warningHandler(config), newLimiter: limiterOf(config)}
	t.base.Path = strings.TrimRight(t.base.Path, "/")
	t.base.RawPath, t.base.RawQuery, t.base.Fragment = "", "", ""
	if httpClient.Timeout > 0 {
		t.timeout = httpClient.Timeout.String()
	}
	metrics.EnsureRegistered()
	return t, nil
}

// limiterOf gives what the config says of limits: one limiter for all, none, or one for each kind with the config's
// figures, as client-go makes one for each REST client.
func limiterOf(config *rest.Config) func() flowcontrol.RateLimiter {
	if config.RateLimiter != nil {
		return func() flowcontrol.RateLimiter { return config.RateLimiter }
	}
	qps, burst := config.QPS, config.Burst
	if qps < 0 {
		return nil
	}
	if qps == 0 {
		qps = rest.DefaultQPS
	}
	if burst == 0 {
		burst = rest.DefaultBurst
	}
	return func() flowcontrol.RateLimiter { return flowcontrol.NewTokenBucketRateLimiter(qps, burst) }
}

// An attempt is what one sending of a call came to.
type attempt struct {
	answer answer
	header http.Header
	err    error // of the connection; nil if there is an answer
}

// send sends a call, if need be several times, and returns the last answer. buffer, if not nil, is what the answer's body
// is read into. unsure is set if an earlier attempt may have done what the call asks for although it did not tell.
func (t *transport) send(ctx context.Context, c *call, found *resource, buffer *bytes.Buffer) (last attempt, unsure bool) {
	var previous error
	for n := 1; ; n++ {
		if err := t.throttle(ctx, c, found); err != nil {
			return attempt{err: afterPrevious(notSent{err}, previous)}, unsure
		}
		last = t.once(ctx, c, found, buffer)
		t.count(ctx, c, last, n)
		wait, again := t.sendAgain(c, last)
		if !again || n == maxAttempts {
			last.err = afterPrevious(last.err, previous)
			return last, unsure
		}
		unsure = unsure || last.answer.code >= 500
		previous = last.err
		if err := pause(ctx, wait); err != nil {
			return attempt{err: afterPrevious(err, previous)}, unsure
		}
	}
}

func afterPrevious(err, previous error) error {
	if err == nil || previous == nil || err.Error() == previous.Error() {
		return err
	}
	return fmt.Errorf("%w (an earlier attempt: %v)", err, previous)
}

// sendAgain tells whether a call is to be sent again after an attempt, and when.
func (t *transport) sendAgain(c *call, a attempt) (time.Duration, bool) {
	if a.err != nil {
		broken := utilnet.IsConnectionReset(a.err) || utilnet.IsProbableEOF(a.err) || utilnet.IsHTTP2ConnectionLost(a.err)
		return brokenConnectionDelay, broken && c.method == http.MethodGet
	}
	if a.answer.code != http.StatusTooManyRequests && a.answer.code < http.StatusInternalServerError {
		return 0, false
	}
	seconds, told := retryAfter(a.header)
	return time.Duration(seconds) * time.Second, told
}

// retryAfter reads the header of that name; only seconds are understood.
func retryAfter(header http.Header) (int, bool) {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	return seconds, err == nil && seconds >= 0
}

func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

// causeOf tells why a context is done, in a way that errors.Is finds both the reason and the context's own error.
func causeOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

func (t *transport) throttle(ctx context.Context, c *call, found *resource) error {
	if ctx.Err() != nil {
		return causeOf(ctx)
	}
	if found.limiter == nil {
		return nil
	}
	start := time.Now()
	if err := found.limiter.Wait(ctx); err != nil {
		if ctx.Err() != nil { // the limiter tells the context's error, not its reason
			err = causeOf(ctx)
		}
		return fmt.Errorf("wait for the client's own rate limit: %w", err)
	}
	metrics.RateLimiterLatency.Observe(ctx, c.method, t.base, time.Since(start))
	return nil
}

// once sends a call one time and reads the answer.
func (t *transport) once(ctx context.Context, c *call, found *resource, buffer *bytes.Buffer) attempt {
	start := time.Now()
	response, err := t.client.Do(t.request(ctx, c, found))
	metrics.RequestLatency.Observe(ctx, c.method, t.base, time.Since(start))
	metrics.RequestSize.Observe(ctx, c.method, t.base.Host, float64(len(c.body)))
	if err != nil {
		return attempt{err: t.connectionError(ctx, err)}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := readBody(response, buffer)
	if err != nil {
		return attempt{err: fmt.Errorf("the connection broke in the middle of the answer, send the request again: %w", err)}
	}
	metrics.ResponseSize.Observe(ctx, c.method, t.base.Host, float64(len(body)))
	if warnings := response.Header["Warning"]; len(warnings) > 0 {
		t.passOn(ctx, warnings)
	}
	return attempt{
		answer: answer{code: response.StatusCode, contentType: response.Header.Get("Content-Type"), body: body},
		header: response.Header,
	}
}

func (t *transport) request(ctx context.Context, c *call, found *resource) *http.Request {
	target := t.base
	target.Path = t.base.Path + found.path(c)
	target.RawQuery = c.query
	if t.timeout != "" {
		target.RawQuery = joinQuery(target.RawQuery, "timeout="+url.QueryEscape(t.timeout))
	}
	header := make(http.Header, 3)
	header["Accept"] = []string{c.accept}
	request := (&http.Request{
		Method: c.method, URL: &target, Host: target.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if c.body != nil {
		header["Content-Type"] = []string{c.bodyType}
		request.ContentLength = int64(len(c.body))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
		request.Body, _ = request.GetBody()
	}
	return request
}

func joinQuery(query, more string) string {
	if query == "" {
		return more
	}
	return query + "&" + more
}

// readBody reads an answer whole, into buffer or, if that is nil, into memory of its own.
func readBody(response *http.Response, buffer *bytes.Buffer) ([]byte, error) {
	if buffer == nil {
		buffer = &bytes.Buffer{}
	}
	buffer.Reset()
	if hint := response.ContentLength; hint > 0 && hint <= maxHintedBuffer {
		buffer.Grow(int(hint) + bytes.MinRead) // MinRead, so that the last, empty read does not grow it
	}
	if _, err := buffer.ReadFrom(response.Body); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// connectionError tells what is known of a request that has no answer.
func (t *transport) connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		return err
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return notSent{fmt.Errorf("the API server at %s cannot be reached, check that it runs and that the kubeconfig names it: %w", t.base.Host, err)}
	}
	return err
}

// count tells the metrics of an attempt; n is 1 for the first.
func (t *transport) count(ctx context.Context, c *call, a attempt, n int) {
	code := "<error>"
	if a.err == nil {
		code = strconv.Itoa(a.answer.code)
	}
	metrics.RequestResult.Increment(ctx, code, c.method, t.base.Host)
	if n > 1 {
		metrics.RequestRetry.IncrementRetry(ctx, code, c.method, t.base.Host)
	}
}

// passOn hands warnings of the server to the handler. A header that cannot be read is dropped: it is only a warning.
func (t *transport) passOn(ctx context.Context, headers []string) {
	warnings, _ := utilnet.ParseWarningHeaders(headers)
	for _, w := range warnings {
		t.warn.HandleWarningHeaderWithContext(ctx, w.Code, w.Agent, w.Text)
	}
}
