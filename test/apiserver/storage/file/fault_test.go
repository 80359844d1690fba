// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"syscall"
	"testing"
)

// script is a run of writes by one writer that knows what the store must hold afterwards.
type script struct {
	rng     *rand.Rand
	model   map[string]string
	rev     int64
	unknown map[string]string // what the store may hold instead; nil if that is known
}

func newScript(seed int64) *script {
	return &script{rng: rand.New(rand.NewSource(seed)), model: make(map[string]string), rev: firstRevision}
}

// run makes n steps and gives the first error that is not the disk being full.
func (c *script) run(s *Store, n int) error {
	for i := range n {
		if err := c.step(s, i); err != nil && !errors.Is(err, ErrFull) {
			return err
		}
	}
	return nil
}

func (c *script) step(s *Store, i int) error {
	switch c.rng.Intn(20) {
	case 0:
		return s.Compact(max(s.CompactRevision(), s.Revision()-5))
	case 1:
		return s.Persist()
	}
	next := maps.Clone(c.model)
	var ops []Op
	for range 1 + c.rng.Intn(3) {
		key := fmt.Sprintf("/k/%02d", c.rng.Intn(30))
		if _, ok := next[key]; ok && c.rng.Intn(3) == 0 {
			ops = append(ops, Op{Key: key, Expect: AnyRevision})
			delete(next, key)
			continue
		}
		value := fmt.Sprintf("%d %s", i, make([]byte, c.rng.Intn(900)))
		ops = append(ops, Op{Key: key, Value: []byte(value), Expect: AnyRevision})
		next[key] = value
	}
	r, err := s.Txn(context.Background(), ops...)
	switch {
	case err == nil && !r.Applied:
		return fmt.Errorf("an unconditional write was not applied: %+v", r)
	case err == nil:
		c.model, c.rev = next, r.Revision
	case errors.Is(err, ErrUnknownOutcome):
		c.unknown = next
	}
	return err
}

// check compares the store with what it must hold.
func (c *script) check(t *testing.T, s *Store, about string) {
	t.Helper()
	got := contents(s)
	if !maps.Equal(got, c.model) && (c.unknown == nil || !maps.Equal(got, c.unknown)) {
		t.Errorf("%s: the store holds %d keys that are neither what was acknowledged (%d) nor that and the last write",
			about, len(got), len(c.model))
	}
	if s.Revision() < c.rev {
		t.Errorf("%s: revision %d, but %d was acknowledged", about, s.Revision(), c.rev)
	}
	if err := s.Verify(); err != nil {
		t.Errorf("%s: %v", about, err)
	}
}

// reopen opens what is left on a disk, checks it, and checks that it can be written again.
func (c *script) reopen(t *testing.T, disk *memFS, about string) {
	t.Helper()
	s, err := Open(Options{Dir: "/d", FS: disk})
	if err != nil {
		t.Errorf("%s: %v", about, err)
		return
	}
	c.check(t, s, about)
	rev := s.Revision()
	if r, err := s.Put(context.Background(), "/after", []byte("x"), AnyRevision); err != nil || r.Revision != rev+1 {
		t.Errorf("%s: a write after it: %+v %v", about, r, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: %v", about, err)
	}
}

// TestEveryCallFails makes each call to the file system fail once, in each way it can.
func TestEveryCallFails(t *testing.T) {
	kinds := []struct {
		name  string
		err   error
		short bool
		only  string // the call that can fail so
	}{
		{name: "EIO", err: errDevice},
		{name: "ENOSPC", err: syscall.ENOSPC},
		{name: "short write", err: errDevice, short: true, only: "write"},
		{name: "no space half-way", err: syscall.ENOSPC, short: true, only: "write"},
	}
	const steps = 60
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			for n := 1; ; n++ {
				about := fmt.Sprintf("%s at call %d", kind.name, n)
				disk, fired := newMemFS(), false
				disk.fail = func(call int, what, _ string) (error, bool) {
					if call != n || kind.only != "" && what != kind.only {
						return nil, false
					}
					fired = true
					return kind.err, kind.short
				}
				c := newScript(7)
				s, err := Open(Options{Dir: "/d", FS: disk})
				if err == nil {
					if err := c.run(s, steps); err != nil {
						c.run(s, 5) // a poisoned store answers, and writes nothing
					}
					c.check(t, s, about+", same process")
				}
				ended := disk.calls < n
				cut := disk.powerCut(rand.New(rand.NewSource(int64(n))))
				killed := disk.killed()
				if s != nil {
					s.Close()
				}
				if ended {
					if n < 100 {
						t.Errorf("the script ended after %d calls", n)
					}
					return
				}
				if fired || kind.only == "" {
					c.reopen(t, killed, about+", killed")
					c.reopen(t, cut, about+", power cut")
				}
			}
		})
	}
}

// TestPowerCuts cuts the power at many places and looks at many of the states a disk may be in then.
func TestPowerCuts(t *testing.T) {
	runs := 150
	if testing.Short() {
		runs = 20
	}
	for seed := range runs {
		disk := newMemFS()
		s, err := Open(Options{Dir: "/d", FS: disk})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewSource(int64(seed)))
		c := newScript(int64(seed))
		if err := c.run(s, rng.Intn(60)); err != nil {
			t.Fatal(err)
		}
		// A cut in the middle of a commit: the write is on its way and nobody has been told.
		at := disk.calls + 1 + rng.Intn(4)
		var cuts []*memFS
		disk.fail = func(call int, _, _ string) (error, bool) {
			if call == at {
				disk.mu.Unlock()
				for range 4 {
					cuts = append(cuts, disk.powerCut(rng))
				}
				cuts = append(cuts, disk.killed())
				disk.mu.Lock()
			}
			return nil, false
		}
		before := *c
		for len(cuts) == 0 {
			before = *c
			if err := c.step(s, 1000); err != nil {
				t.Fatal(err)
			}
		}
		before.unknown = c.model
		for i, cut := range cuts {
			before.reopen(t, cut, fmt.Sprintf("seed %d, call %d, cut %d", seed, at, i))
		}
		s.Close()
	}
}

func TestFailedSyncPoisons(t *testing.T) {
	disk := newMemFS()
	s, err := Open(Options{Dir: "/d", FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rev := put(t, s, "/a", "1", 0)
	b := newBenchOn(t, s)
	if err := b.ReadinessCheck(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	disk.fail = func(_ int, what, _ string) (error, bool) {
		if what == "sync" {
			return errDevice, false
		}
		return nil, false
	}
	_, err = s.Put(context.Background(), "/b", []byte("2"), 0)
	if !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, errDevice) {
		t.Errorf("a write whose sync failed gave %v", err)
	}
	disk.fail = nil // the disk is well again, but nobody knows what it forgot
	for range 3 {
		if _, err := s.Put(context.Background(), "/a", []byte("2"), rev); err == nil {
			t.Error("a poisoned store took a write")
		}
	}
	if kv, now := s.Get("/a"); kv == nil || string(kv.Value) != "1" || now != rev {
		t.Errorf("reads after the failure: %v at %d", kv, now)
	}
	if err := b.ReadinessCheck(); err == nil || !errors.Is(err, errDevice) {
		t.Errorf("readiness says %v", err)
	}
}

// TestRefusedByWhatWasNeverDurable: a condition that fails because of a write in the same batch tells of that write, so
// it must not be answered if the batch does not become durable. Porcupine found this one.
func TestRefusedByWhatWasNeverDurable(t *testing.T) {
	disk := newMemFS()
	s, err := Open(Options{Dir: "/d", FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, s, "/there", "1", 0)
	disk.fail = func(_ int, what, _ string) (error, bool) {
		if what == "sync" {
			return errDevice, false
		}
		return nil, false
	}
	ask := func(key string) *request {
		return &request{writes: []write{{op: op{kind: opPut, key: key, value: []byte("x")}, expect: 0}}}
	}
	batch := []*request{ask("/new"), ask("/new"), ask("/there")}
	s.commit(batch)
	for i, r := range batch[:2] {
		if !errors.Is(r.err, ErrUnknownOutcome) || r.current != nil {
			t.Errorf("request %d: applied %v, met %+v, error %v", i, r.applied, r.current, r.err)
		}
	}
	if r := batch[2]; r.err != nil || r.applied || r.current == nil {
		t.Errorf("a condition that failed for older reasons: %+v", r)
	}
}

func TestFullDisk(t *testing.T) {
	disk := newMemFS()
	s, err := Open(Options{Dir: "/d", FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	rev := put(t, s, "/a", "1", 0)
	full := true
	given := false
	disk.fail = func(_ int, what, name string) (error, bool) {
		if what == "remove" && full {
			given = true
		}
		if what == "reserve" && full && !given || what == "create" && full {
			return syscall.ENOSPC, false
		}
		return nil, false
	}
	var refusal error
	for i := 0; refusal == nil && i < 10_000; i++ {
		_, refusal = s.Put(context.Background(), "/fill", make([]byte, 60<<10), AnyRevision)
		s.log.room = min(s.log.room, s.log.end) // whatever was reserved in advance is used up
	}
	if !errors.Is(refusal, ErrFull) {
		t.Fatalf("a write to a full disk gave %v", refusal)
	}
	if err := s.Failure(); err != nil {
		t.Errorf("a full disk poisoned the store: %v", err)
	}
	r, err := s.Delete(context.Background(), "/a", rev)
	if err != nil || !r.Applied || !given {
		t.Errorf("a delete on a full disk: %+v %v, reserve given up: %v", r, err, given)
	}
	if _, err := s.Put(context.Background(), "/b", []byte("x"), 0); !errors.Is(err, ErrFull) {
		t.Errorf("a second write to a full disk gave %v", err)
	}
	full = false
	s.log.asked = s.log.asked.Add(-2 * fullRetry)
	put(t, s, "/b", "x", 0)
	want := contents(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(Options{Dir: "/d", FS: disk.killed()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := contents(s); !maps.Equal(got, want) {
		t.Errorf("after a restart: %d keys, want %d", len(got), len(want))
	}
}

// TestBitFlips flips single bits all over the files and expects each to be found or to be without effect.
func TestBitFlips(t *testing.T) {
	disk := newMemFS()
	s, err := Open(Options{Dir: "/d", FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	c := newScript(3)
	if err := c.run(s, 150); err != nil {
		t.Fatal(err)
	}
	rev := s.Revision()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewSource(9))
	found, harmless := 0, 0
	names := append(disk.only(logPrefix), disk.only(snapshotPrefix)...)
	for i := range 1000 {
		next := disk.killed()
		name := names[i%len(names)]
		data := next.names[name].data
		bit := rng.Intn(len(data) * 8)
		data[bit/8] ^= 1 << (bit % 8)
		about := fmt.Sprintf("bit %d of %s", bit, name)
		s, err := Open(Options{Dir: "/d", FS: next})
		if err != nil {
			var corrupt *CorruptError
			var format *FormatError
			if !errors.As(err, &corrupt) && !errors.As(err, &format) {
				t.Errorf("%s: %v", about, err)
			}
			found++
			continue
		}
		if s.Revision() != rev {
			t.Errorf("%s: revision %d instead of %d, and nothing was said", about, s.Revision(), rev)
		}
		c.check(t, s, about)
		s.Close()
		harmless++
	}
	t.Logf("%d found, %d without effect, of %d files", found, harmless, len(names))
	if found < 100 || harmless < 10 {
		t.Errorf("%d found and %d without effect: the flips do not cover the files", found, harmless)
	}
}
