// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long anything may take that must happen, on a machine that does other things.
const patience = time.Minute

// openTest opens a store that checks itself, and closes it when the test ends.
func openTest(t testing.TB, o Options) *Store {
	t.Helper()
	o.Check = true
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// put writes key and gives its revision.
func put(t testing.TB, s *Store, key, value string, expect int64) int64 {
	t.Helper()
	r, err := s.Put(context.Background(), key, []byte(value), expect)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Applied {
		t.Fatalf("put %s at %d: the key is at %+v", key, expect, r.Current)
	}
	return r.Revision
}

// contents gives all keys and values.
func contents(s *Store) map[string]string {
	m := make(map[string]string)
	kvs, _, _ := s.Range("", 0)
	for _, kv := range kvs {
		m[kv.Key] = string(kv.Value)
	}
	return m
}

func TestTreeAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	var tr tree
	tr.share()
	model := make(map[string]*version)
	type kept struct {
		root  *node
		model map[string]*version
	}
	var old []kept
	for i := range 30_000 {
		key := fmt.Sprintf("/k/%04d", rng.Intn(3000))
		if rng.Intn(3) == 0 || i > 25_000 {
			if got := tr.delete(key); got != model[key] {
				t.Fatalf("delete %s gave %v, want %v", key, got, model[key])
			}
			delete(model, key)
		} else {
			v := &version{key: key, value: make([]byte, rng.Intn(5)), created: 1, mod: 1}
			if got := tr.set(v); got != model[key] {
				t.Fatalf("set %s gave %v, want %v", key, got, model[key])
			}
			model[key] = v
		}
		if i%3000 == 0 {
			c := make(map[string]*version, len(model))
			for k, v := range model {
				c[k] = v
			}
			old = append(old, kept{tr.share(), c})
		}
	}
	old = append(old, kept{tr.share(), model})
	for _, o := range old {
		if o.root != nil {
			o.root.verify(true, func(f string, a ...any) { t.Errorf(f, a...) })
		}
		n := 0
		o.root.ascend("", func(v *version) bool {
			if o.model[v.key] != v {
				t.Fatalf("a shared tree changed at %s", v.key)
			}
			n++
			return true
		})
		if n != len(o.model) {
			t.Errorf("a shared tree has %d keys, want %d", n, len(o.model))
		}
		for _, prefix := range []string{"", "/k/", "/k/1", "/k/29", "/x", "/k/0000"} {
			want := 0
			for k := range o.model {
				if strings.HasPrefix(k, prefix) {
					want++
				}
			}
			if got := o.root.within(prefix, "").count; got != want {
				t.Errorf("%q has %d keys, counted %d", prefix, want, got)
			}
		}
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	for _, mode := range []Mode{Durable, Relaxed} {
		for _, persist := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/snapshot=%v", mode, persist), func(t *testing.T) {
				dir := t.TempDir()
				o := Options{Dir: dir, Mode: mode}
				s := openTest(t, o)
				for i := range 500 {
					put(t, s, fmt.Sprintf("/r/a/%03d", i), fmt.Sprint("first ", i), 0)
				}
				mid := s.Revision()
				for i := range 100 {
					put(t, s, fmt.Sprintf("/r/a/%03d", i), fmt.Sprint("second ", i), AnyRevision)
				}
				if r, err := s.Delete(context.Background(), "/r/a/499", AnyRevision); err != nil || !r.Applied {
					t.Fatal(r, err)
				}
				if err := s.Compact(mid); err != nil {
					t.Fatal(err)
				}
				if persist {
					for range 3 {
						if err := s.Persist(); err != nil {
							t.Fatal(err)
						}
						put(t, s, "/r/more", "x", AnyRevision)
					}
				}
				want, rev := contents(s), s.Revision()
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openTest(t, o)
				if got := contents(s); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("the store came back different")
				}
				if s.Revision() != rev {
					t.Errorf("revision %d came back as %d", rev, s.Revision())
				}
				if s.CompactRevision() != mid {
					t.Errorf("compact revision %d came back as %d", mid, s.CompactRevision())
				}
				if v, err := s.viewAt(mid, ""); err != nil || string(v.get("/r/a/007").value) != "first 7" {
					t.Errorf("the past is gone: %v", err)
				}
				if len(s.Notes()) > 0 {
					t.Errorf("notes after a clean close: %v", s.Notes())
				}
			})
		}
	}
}

func TestRevisionNeverGoesBack(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	s := openTest(t, o)
	put(t, s, "/a", "1", 0)
	last := put(t, s, "/b", "1", 0)
	if _, err := s.Delete(context.Background(), "/b", last); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		rev := s.Revision()
		if err := errors.Join(s.Compact(rev), s.Persist(), s.Close()); err != nil {
			t.Fatal(err)
		}
		s = openTest(t, o)
		if s.Revision() != rev || s.CompactRevision() != rev {
			t.Fatalf("revision %d came back as %d, compacted to %d", rev, s.Revision(), s.CompactRevision())
		}
	}
}

func TestConcurrentWriters(t *testing.T) {
	for _, o := range []Options{{Mode: Memory}, {Dir: t.TempDir(), Mode: Relaxed}, {Dir: t.TempDir()}} {
		t.Run(o.Mode.String(), func(t *testing.T) {
			s := openTest(t, o)
			const writers, rounds = 8, 50
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for range rounds {
						for {
							kv, _ := s.Get("/counter")
							var n, at int64
							if kv != nil {
								fmt.Sscan(string(kv.Value), &n)
								at = kv.ModRevision
							}
							r, err := s.Put(context.Background(), "/counter", fmt.Append(nil, n+1), at)
							if err != nil {
								t.Error(err)
								return
							}
							if r.Applied {
								break
							}
						}
					}
				})
			}
			wg.Wait()
			if got := contents(s)["/counter"]; got != fmt.Sprint(writers*rounds) {
				t.Errorf("counted to %s, want %d", got, writers*rounds)
			}
			if want := int64(1 + writers*rounds); s.Revision() != want {
				t.Errorf("revision %d, want %d: one for each write", s.Revision(), want)
			}
		})
	}
}

func TestSecondOpenNamesTheHolder(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	openTest(t, o)
	quickest := time.Hour
	for range 20 { // a machine that does other things may stop in the middle of one, not of each
		start := time.Now()
		_, err := Open(o)
		quickest = min(quickest, time.Since(start))
		var inUse *InUseError
		if !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
			t.Fatalf("a second open gave %v", err)
		}
	}
	if quickest > 100*time.Millisecond {
		t.Errorf("it took %v", quickest)
	}
}

func TestFilesAreTheOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	s := openTest(t, Options{Dir: dir})
	put(t, s, "/a", "1", 0)
	if err := s.Persist(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 4 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", e.Name(), info.Mode(), err)
		}
	}
}

func TestRestoreWritesTheDifference(t *testing.T) {
	s := openTest(t, Options{Mode: Memory})
	const crd = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
	put(t, s, crd+"old", "crd", 0)
	put(t, s, "/registry/old/ns/x", "instance", 0)
	put(t, s, "/registry/pods/same", "same", 0)
	put(t, s, "/registry/pods/changed", "before", 0)
	snap := s.Snapshot()
	want := contents(s)

	tap := s.tap("/registry/", true, s.Revision())
	defer tap.drop()
	for _, key := range []string{"/registry/old/ns/x", crd + "old"} {
		if _, err := s.Delete(context.Background(), key, AnyRevision); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, "/registry/pods/changed", "after", AnyRevision)
	put(t, s, crd+"new", "crd", 0)
	put(t, s, "/registry/new/ns/y", "instance", 0)
	before := s.Revision()

	done, err := s.Restore(context.Background(), snap, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(s); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("restored %v, want %v", got, want)
	}
	if got, want := fmt.Sprint(done.Deleted), fmt.Sprint([]string{"/registry/new/ns/y", crd + "new"}); got != want {
		t.Errorf("deleted %v, want %v", got, want)
	}
	if got, want := fmt.Sprint(done.Written), fmt.Sprint([]string{crd + "old", "/registry/old/ns/x", "/registry/pods/changed"}); got != want {
		t.Errorf("wrote %v, want %v", got, want)
	}
	events, rev, err := tap.next()
	if err != nil || rev != done.Revision || len(events) != int(done.Revision-before)+5 {
		t.Errorf("the watch saw %d events up to %d: %v", len(events), rev, err)
	}
	again, err := s.Restore(context.Background(), snap, nil)
	if err != nil || again.Revision != done.Revision {
		t.Errorf("a second restore wrote something: %+v %v", again, err)
	}
}

func TestExpiry(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir}
	s := openTest(t, o)
	ctx := context.Background()
	made, err := s.Txn(ctx, Op{Key: "/soon", Value: []byte("x"), Expires: time.Now().Add(50 * time.Millisecond)},
		Op{Key: "/later", Value: []byte("x"), Expires: time.Now().Add(time.Hour)},
		Op{Key: "/renewed", Value: []byte("x"), Expires: time.Now().Add(50 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "/renewed", "y", AnyRevision)
	// From the write on, not from now on: a slow disk may take longer for the two than the first has to live.
	tap := s.tap("/soon", false, made.Revision)
	defer tap.drop()
	for enough := time.After(patience); ; {
		events, _, err := tap.next()
		if err != nil {
			t.Fatal(err)
		}
		if len(events) > 0 {
			if kv, _ := s.Get("/soon"); kv != nil {
				t.Error("told of, but it is still there")
			}
			break
		}
		select {
		case <-tap.wake:
		case <-enough:
			t.Fatal("it did not expire")
		}
	}
	if _, err := s.Txn(ctx, Op{Key: "/gone", Value: []byte("x"), Expires: time.Now().Add(time.Millisecond)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, o)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if kv, _ := s.Get("/gone"); kv == nil {
			break
		}
	}
	got := contents(s)
	if len(got) != 2 || got["/later"] != "x" || got["/renewed"] != "y" {
		t.Errorf("after a restart: %v", got)
	}
}
