// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strings"
	"testing"
)

// TestCheckFinds breaks a store and an overlay by hand, one invariant at a time.
func TestCheckFinds(t *testing.T) {
	broken := func(t *testing.T, what string, damage func(s *store)) {
		t.Helper()
		s := newStore()
		for _, name := range []string{"a", "b", "c"} {
			m := configMap("n", name)
			m.Labels = map[string]string{"l": name}
			s.set("n/"+name, m, "1")
		}
		s.labelIndex("l")
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		damage(s)
		if err := s.check(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error with %q, got %v", what, err)
		}
	}
	broken(t, "items", func(s *store) { s.order.remove("n/b") })
	broken(t, "another item", func(s *store) { s.items["n/a"] = &item{key: "n/a"} })
	broken(t, "lacks", func(s *store) { delete(s.labels["l"].postings, "b") })
	broken(t, "too many", func(s *store) { s.labels["l"].file("z", s.items["n/a"]) })
	broken(t, "empty posting", func(s *store) { s.labels["l"].postings["y"] = &order{} })

	o := newOverlay(func() uint64 { return 1 })
	o.putHole("k")
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	o.n.Store(7)
	if err := o.check(); err == nil {
		t.Error("a wrong count was not found")
	}
}
