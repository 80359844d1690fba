// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wherry-dev/wherry/client"
)

// CL-1 (4): the list right after a DeleteAllOf shows exactly what is left, in every form, and never goes back:
// neither before the events come nor while they do.
func TestListAfterDeleteAllOf(t *testing.T) {
	for _, s := range shapes(configMapKind, widgetKind) {
		t.Run(s.String(), func(t *testing.T) {
			held, watches := heldWatches(config)
			c := start(t, held).GetClient()
			a, b := namespace(t), namespace(t)
			want(t, "at the beginning", s.listed(t, c, client.InNamespace(a)))
			for range 3 {
				k2 := s.whole(a, "k2", "l", "1")
				k2.SetFinalizers([]string{finalizer})
				for _, obj := range []client.Object{s.whole(a, "k1", "l", "1"), k2, s.whole(a, "k3", "l", "2"), s.whole(b, "k4", "l", "1")} {
					if err := c.Create(t.Context(), obj); err != nil && !apierrors.IsAlreadyExists(err) {
						t.Fatal(err)
					}
				}
				watches.hold()
				must(t, c.DeleteAllOf(t.Context(), s.object("", ""), client.InNamespace(a), client.MatchingLabels{"l": "1"}))
				for i := range 40 {
					if i == 20 {
						watches.release()
					}
					want(t, "in the namespace", s.listed(t, c, client.InNamespace(a)), a+"/k2!", a+"/k3")
					want(t, "by label", s.listed(t, c, client.InNamespace(a), client.MatchingLabels{"l": "1"}), a+"/k2!")
					want(t, "in the other", s.listed(t, c, client.InNamespace(b)), b+"/k4")
					if s.there(t, c, a, "k1") || !s.there(t, c, a, "k2") {
						t.Error("k1 is shown, or k2 is not")
					}
					if t.Failed() {
						return
					}
					time.Sleep(time.Millisecond) // the events of the deletion arrive between two reads
				}
				if !slices.Equal(s.listed(t, c, client.InNamespace(a)), s.listed(t, live, client.InNamespace(a))) {
					t.Error("cached and live lists differ")
				}
			}
		})
	}
}
