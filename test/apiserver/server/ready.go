// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// readyPeriod is how often a starting server is asked whether it is ready.
	readyPeriod = 5 * time.Millisecond
	// askLimit bounds one such request: what happened to it may not happen to the next.
	askLimit = 20 * time.Second
	// maxReadyAnswer bounds what is read of an answer.
	maxReadyAnswer = 64 << 10
)

// await returns when /readyz answers 200, when the context ends or when the time is up; then the error repeats the last
// answer.
func (s *Server) await(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.config)
	if err != nil {
		return fmt.Errorf("make a client of the server: %w", err)
	}
	defer client.CloseIdleConnections()
	limited, cancel := context.WithTimeoutCause(ctx, readyLimit, errors.New("it took longer than "+readyLimit.String()))
	defer cancel()
	tick := time.NewTicker(readyPeriod)
	defer tick.Stop()
	client.Timeout = askLimit
	var last error
	for {
		err := s.ask(limited, client, "/readyz")
		switch {
		case err == nil:
			return nil
		case last == nil || limited.Err() == nil:
			last = err // another one only says that time was up
		}
		select {
		case <-tick.C:
		case <-s.ran:
			if err := s.Err(); err != nil {
				return err
			}
			return context.Cause(ctx)
		case <-limited.Done():
			if ctx.Err() != nil {
				return last
			}
			return fmt.Errorf("the server did not become ready (%w): %w", context.Cause(limited), last)
		}
	}
}

// ask returns nil if the path answers 200, else what it answered.
func (s *Server) ask(ctx context.Context, client *http.Client, path string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.Host+path, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxReadyAnswer))
	switch {
	case err != nil:
		return err
	case answer.StatusCode == http.StatusOK:
		return nil
	}
	return fmt.Errorf("%s answers %s: %s", path, answer.Status, strings.Join(failing(string(body)), ", "))
}

// failing picks the lines of a health report that tell what is not in order.
func failing(report string) []string {
	var out []string
	for line := range strings.Lines(report) {
		if rest, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(rest, " ")
			out = append(out, name)
		}
	}
	return out
}
