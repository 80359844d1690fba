// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// named counts the names that fresh has made.
var named atomic.Int64

// fresh is a controller's name that no test of this process has had: what is counted goes by the name, and stays.
func fresh(name string) string { return fmt.Sprint(name, " ", named.Add(1)) }

// TestKeeper wants every fault to be counted, and the first of each kind to be
// logged with its key.
func TestKeeper(t *testing.T) {
	var lines []string
	name := fresh("keeper")
	k := NewKeeper(name, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	ctx := IntoContext(t.Context(), k)
	for range 3 {
		FromContext(ctx).Note(Predicate, "a/p", errors.New("boom"))
		FromContext(ctx).Note(Handler, "a/q", errors.New("bang"))
	}
	for _, kind := range []Kind{Predicate, Handler} {
		if n := testutil.ToFloat64(contained().WithLabelValues(name, string(kind))); n != 3 {
			t.Errorf("%s is counted %v times, want 3", kind, n)
		}
	}
	if len(lines) != 2 || !strings.Contains(lines[0], "a/p") || !strings.Contains(lines[1], "a/q") {
		t.Errorf("the lines are %q", lines)
	}
	var none *Keeper
	none.Note(Handler, "k", nil)
}

func TestWithoutKeeper(t *testing.T) {
	var lines []string
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	FromContext(ctx).Note(RateLimiter, "k", errors.New("boom"))
	FromContext(t.Context()).Note(RateLimiter, "k", errors.New("boom"))
	if len(lines) != 1 {
		t.Errorf("the lines are %q, want one", lines)
	}
}
