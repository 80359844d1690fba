// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package behaviour

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// testCase is one thing that an operator can notice.
type testCase struct {
	area string
	name string
	// why says why Wherry differs; it is empty where the libraries must agree.
	why string
	run func(t *testing.T, o *outcome)
}

// outcome is what a case observed.
type outcome struct {
	mu    sync.Mutex
	notes []string
}

// note adds an observation: what was looked at, and what was seen.
func (o *outcome) note(what string, seen any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err, ok := seen.(error); ok {
		seen = verdict(err)
	}
	if seen == nil {
		seen = "ok"
	}
	o.notes = append(o.notes, fmt.Sprintf("%s: %v", what, seen))
}

func (o *outcome) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.notes, "; ")
}

// verdict is the sort of an error, not its text: texts differ and are no
// promise.
func verdict(err error) string {
	var status apierrors.APIStatus
	notCached, notStarted := &cache.ErrResourceNotCached{}, &cache.ErrCacheNotStarted{}
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &status):
		if r := status.Status().Reason; r != "" {
			return string(r)
		}
		return fmt.Sprintf("status %d", status.Status().Code)
	case errors.As(err, &notCached):
		return "ErrResourceNotCached"
	case errors.As(err, &notStarted):
		return "ErrCacheNotStarted"
	case meta.IsNoMatchError(err):
		return "no match"
	case runtime.IsNotRegisteredError(err):
		return "not registered"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline exceeded"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "error"
}

// named is a list of objects by name, sorted.
func named[T any](items []T) string {
	var names []string
	for i := range items {
		names = append(names, any(&items[i]).(metav1.Object).GetName())
	}
	slices.Sort(names)
	return "[" + strings.Join(names, " ") + "]"
}

// within waits until ok, at most for a limit that no case should come near,
// and reports whether it is.
func within(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// patience is how long a case waits for what must happen.
const patience = time.Minute

// quiet is how long a case waits for what must not happen.
const quiet = 300 * time.Millisecond

// must ends a case whose preparation failed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// counter counts, and tells how far.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[what]++
	return c.n[what]
}

func (c *counter) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[what]
}

// sequence notes what happened in which order.
type sequence struct {
	mu   sync.Mutex
	what []string
}

func (s *sequence) add(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what = append(s.what, what)
}

func (s *sequence) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.what, ", ")
}

func (s *sequence) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.what)
}

// library is which one this program was compiled with.
func library() string {
	if strings.HasPrefix(reflect.TypeFor[cache.Options]().PkgPath(), "sigs.k8s.io/controller-runtime/") {
		return "controller-runtime"
	}
	return "wherry"
}

// tried runs f and tells whether it panicked.
func tried(f func()) (result string) {
	defer func() {
		if recover() != nil {
			result = "panic"
		}
	}()
	f()
	return "ok"
}
