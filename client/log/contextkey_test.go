// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package log

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

func TestContextKey(t *testing.T) {
	said := ""
	ctx := context.WithValue(t.Context(), ContextKey(), funcr.New(func(_, args string) { said = args }, funcr.Options{}))
	logger, err := logr.FromContext(ctx)
	if err != nil {
		t.Fatalf("logr finds no logger under the key: %v", err)
	}
	if logger.Info("here"); said == "" {
		t.Error("logr found another logger")
	}
	if ctx.Value(ContextKey()) != logr.NewContext(t.Context(), logger).Value(ContextKey()) {
		t.Error("logr keeps its own logger elsewhere")
	}
}
