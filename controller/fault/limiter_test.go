// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/util/workqueue"
)

// odd is a rate limiter that panics unless it has an answer.
type odd struct{ answer time.Duration }

func (o odd) When(string) time.Duration {
	if o.answer == 0 {
		panic("boom")
	}
	return o.answer
}
func (odd) Forget(string)          { panic("boom") }
func (odd) NumRequeues(string) int { panic("boom") }

// TestLimiter wants nonsense to be contained, counted, and logged once with
// its key.
func TestLimiter(t *testing.T) {
	for name, c := range map[string]struct {
		of     workqueue.TypedRateLimiter[string]
		delay  time.Duration
		faults float64 // of the three calls below
	}{
		"none":     {workqueue.NewTypedItemFastSlowRateLimiter[string](time.Minute, time.Hour, 9), time.Minute, 0},
		"negative": {odd{answer: -time.Hour}, time.Second, 3},
		"panics":   {odd{}, time.Second, 3},
	} {
		var lines []string
		controller := fresh("limiter " + name)
		l := Limiter[string]{c.of, NewKeeper(controller, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))}
		l.Forget("a/p")
		if n := l.NumRequeues("a/p"); n != 0 {
			t.Errorf("%s: %d requeues, want none", name, n)
		}
		if d := l.When("a/p"); d != c.delay {
			t.Errorf("%s: the delay is %s, want %s", name, d, c.delay)
		}
		if n := testutil.ToFloat64(contained().WithLabelValues(controller, string(RateLimiter))); n != c.faults {
			t.Errorf("%s: %v faults are counted, want %v", name, n, c.faults)
		}
		if len(lines) != int(min(c.faults, 1)) || c.faults > 0 && !strings.Contains(lines[0], "a/p") {
			t.Errorf("%s: the lines are %q", name, lines)
		}
	}
}
