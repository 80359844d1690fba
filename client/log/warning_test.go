// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package log

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
)

// The assertion stands here because the package must not link client-go.
var _ rest.WarningHandlerWithContext = &KubeAPIWarningLogger{}

func TestWarningLogger(t *testing.T) {
	for name, c := range map[string]struct {
		opts KubeAPIWarningLoggerOptions
		want int
	}{
		"each":         {KubeAPIWarningLoggerOptions{}, 3},
		"deduplicated": {KubeAPIWarningLoggerOptions{Deduplicate: true}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var out lines
			ctx := IntoContext(t.Context(), out.logger(funcr.Options{}))
			w := NewKubeAPIWarningLogger(c.opts)
			w.HandleWarningHeaderWithContext(ctx, 299, "-", "old version")
			w.HandleWarningHeaderWithContext(ctx, 299, "-", "old version")
			w.HandleWarningHeaderWithContext(ctx, 299, "-", "unknown field")
			w.HandleWarningHeaderWithContext(ctx, 299, "-", "")
			w.HandleWarningHeaderWithContext(ctx, 199, "-", "other code")
			if len(out.all) != c.want {
				t.Errorf("%d lines, want %d: %q", len(out.all), c.want, out.all)
			}
			if !strings.Contains(out.all[0], "old version") {
				t.Errorf("line lacks the text: %s", out.all[0])
			}
		})
	}
}

func TestWarningLoggerIsBounded(t *testing.T) {
	w := NewKubeAPIWarningLogger(KubeAPIWarningLoggerOptions{Deduplicate: true})
	for i := range 3 * maxSeenWarnings {
		w.HandleWarningHeaderWithContext(t.Context(), 299, "-", fmt.Sprint("object ", i))
	}
	if len(w.seen) > maxSeenWarnings {
		t.Errorf("remembers %d texts, bound is %d", len(w.seen), maxSeenWarnings)
	}
}

func TestFromContext(t *testing.T) {
	var out lines
	ctx := IntoContext(t.Context(), out.logger(funcr.Options{}).WithName("mine"))
	FromContext(ctx, "k", 1).Info("x")
	if len(out.all) != 1 || !strings.Contains(out.all[0], `mine "level"=0 "msg"="x" "k"=1`) {
		t.Errorf("got %q", out.all)
	}
	if l := FromContext(t.Context()); l != Log {
		t.Error("an empty context must give Log")
	}
	if l := FromContext(nil); l != Log { //nolint:staticcheck // callers do pass nil
		t.Error("a nil context must give Log")
	}
}
