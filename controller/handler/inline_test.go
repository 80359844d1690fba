// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package handler_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"

	"github.com/wherry-dev/wherry/client"
	"github.com/wherry-dev/wherry/controller/event"
	"github.com/wherry-dev/wherry/controller/handler"
	"github.com/wherry-dev/wherry/controller/reconcile"
)

// embedding is a user's handler: it has the methods of ours, and may block.
type embedding struct{ handler.EventHandler }

// TestInline wants only handlers of ours that call no user's function to be
// inline.
func TestInline(t *testing.T) {
	mapFunc := func(context.Context, client.Object) []reconcile.Request { return nil }
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	own := &handler.EnqueueRequestForObject{}
	for name, c := range map[string]struct {
		h    any
		want bool
	}{
		"object":         {own, true},
		"owner":          {handler.EnqueueRequestForOwner(scheme, mapper, &corev1.Node{}), true},
		"wrapped own":    {handler.WithLowPriorityWhenUnchanged[client.Object, reconcile.Request](own), true},
		"no functions":   {handler.Funcs{}, true},
		"functions":      {handler.Funcs{CreateFunc: func(context.Context, event.CreateEvent, workqueue.TypedRateLimitingInterface[reconcile.Request]) {}}, false},
		"map func":       {handler.EnqueueRequestsFromMapFunc(mapFunc), false},
		"user's":         {embedding{}, false},
		"wrapped user's": {handler.WithLowPriorityWhenUnchanged[client.Object, reconcile.Request](embedding{}), false},
		"nil":            {nil, false},
	} {
		if got := handler.Inline(c.h); got != c.want {
			t.Errorf("%s: inline %t, want %t", name, got, c.want)
		}
	}
}
