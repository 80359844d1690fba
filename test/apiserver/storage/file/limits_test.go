// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/storage"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestLargeObjects(t *testing.T) {
	o := Options{Dir: t.TempDir(), Mode: Relaxed}
	s := openTest(t, o)
	big := bytes.Repeat([]byte("x"), 3<<19) // 1.5 MiB
	for i := range 8 {
		put(t, s, fmt.Sprintf("/big/%d", i), string(big), 0)
	}
	_, err := s.Put(t.Context(), "/too/big", make([]byte, maxValueBytes+1), 0)
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a value above the limit gave %v", err)
	}
	if err := errors.Join(s.Persist(), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, o)
	if kv, _ := s.Get("/big/7"); kv == nil || !bytes.Equal(kv.Value, big) {
		t.Error("a large value came back different")
	}
	if keys, n := s.Size(); keys != 8 || n != int64(8*len(big)) {
		t.Errorf("%d keys with %d bytes", keys, n)
	}
}

func TestManyObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 objects take a few seconds")
	}
	o := Options{Dir: t.TempDir(), Mode: Relaxed}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	const all, each = 100_000, 1000
	value := bytes.Repeat([]byte("v"), 500)
	for i := 0; i < all; i += each {
		ops := make([]Op, each)
		for j := range ops {
			ops[j] = Op{Key: fmt.Sprintf("/many/%06d", i+j), Value: value, Expect: 0}
		}
		if r, err := s.Txn(t.Context(), ops...); err != nil || !r.Applied {
			t.Fatal(r, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if s, err = Open(o); err != nil {
		t.Fatal(err)
	}
	t.Logf("opened %d objects in %v", all, time.Since(begun))
	defer s.Close()
	if keys, _ := s.Size(); keys != all || s.Revision() != all+1 {
		t.Errorf("%d keys at revision %d", keys, s.Revision())
	}
}

func TestClockJumps(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(start)
	s := openTest(t, Options{Mode: Memory, Clock: clock})
	s.expireDue()
	b := newBenchOn(t, s)
	p := pod("a", "", nil)
	if err := b.Create(b.ctx, "/pods/ns/a", p, nil, 60); err != nil {
		t.Fatal(err)
	}
	there := func() bool { kv, _ := s.Get("/pods/ns/a"); return kv != nil }
	clock.SetTime(start.Add(-24 * time.Hour)) // a day back: what lives does not die
	s.expireDue()
	if !there() {
		t.Fatal("it expired when the clock went back")
	}
	rev := s.Revision()
	if b.set(t, "other", "x", nil) != rev+1 {
		t.Error("revisions depend on the clock")
	}
	clock.SetTime(start.Add(59 * time.Second))
	s.expireDue()
	if !there() {
		t.Fatal("it expired too early")
	}
	clock.SetTime(start.Add(time.Hour)) // a jump ahead
	s.expireDue()
	if there() {
		t.Error("it outlived its time")
	}
}

// TestUpdateKeepsTimeToLive: an update that names no time to live leaves the old one alone.
func TestUpdateKeepsTimeToLive(t *testing.T) {
	b := newBench(t, Options{Mode: Memory})
	if err := b.Create(b.ctx, "/pods/ns/a", pod("a", "1", nil), nil, 3600); err != nil {
		t.Fatal(err)
	}
	first, _ := b.store.Get("/pods/ns/a")
	b.set(t, "a", "2", nil)
	if second, _ := b.store.Get("/pods/ns/a"); !second.Expires.Equal(first.Expires) || second.Expires.IsZero() {
		t.Errorf("an update changed the expiry from %v to %v", first.Expires, second.Expires)
	}
}

func TestAfterClose(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	b := newBenchOn(t, s)
	b.set(t, "a", "1", nil)
	w := b.watch(t, s.Revision(), nil)
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	select {
	case _, ok := <-w.ResultChan():
		if ok {
			t.Error("an event after the end")
		}
	case <-time.After(patience):
		t.Error("the watch goes on")
	}
	if _, err := s.Put(t.Context(), "/b", nil, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("a write after the end gave %v", err)
	}
	if _, err := b.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}); !errors.Is(err, ErrClosed) {
		t.Errorf("a watch after the end gave %v", err)
	}
}

// restorable gives a store of n objects, a snapshot, and a change to every tenth since.
func restorable(t testing.TB, o Options, n int) (*Store, *Snapshot) {
	s := openTest(t, o)
	ops := make([]Op, n)
	for i := range ops {
		ops[i] = Op{Key: fmt.Sprintf("/registry/configmaps/ns/%06d", i), Value: bytes.Repeat([]byte("v"), 1000)}
	}
	if _, err := s.Txn(context.Background(), ops...); err != nil {
		t.Fatal(err)
	}
	snap := s.Snapshot()
	change(t, s, n)
	return s, snap
}

func change(t testing.TB, s *Store, n int) {
	var ops []Op
	for i := 0; i < n; i += 10 {
		ops = append(ops, Op{Key: fmt.Sprintf("/registry/configmaps/ns/%06d", i), Value: []byte("changed"), Expect: AnyRevision})
	}
	if _, err := s.Txn(context.Background(), ops...); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreAgain restores the same snapshot 20 times in a row.
func TestRestoreAgain(t *testing.T) {
	const objects = 1000
	s, snap := restorable(t, Options{Mode: Memory}, objects)
	var longest time.Duration
	for range 20 {
		begun := time.Now()
		done, err := s.Restore(t.Context(), snap, nil)
		longest = max(longest, time.Since(begun))
		if err != nil || len(done.Written) != objects/10 || len(done.Deleted) != 0 {
			t.Fatalf("%+v %v", done, err)
		}
		change(t, s, objects)
	}
	t.Logf("the longest of 20 restores took %v", longest)
}

func BenchmarkRestore(b *testing.B) {
	const objects = 1000
	s, snap := restorable(b, Options{Mode: Memory}, objects)
	for b.Loop() {
		if _, err := s.Restore(b.Context(), snap, nil); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		change(b, s, objects)
		b.StartTimer()
	}
}
