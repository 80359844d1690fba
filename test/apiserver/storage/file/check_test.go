// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// damaged gives a folder with a store whose log is damaged in the middle, what it held before the damage, and its
// last revision.
func damaged(t *testing.T) (dir string, before map[string]string, rev int64) {
	dir = t.TempDir()
	s := openTest(t, Options{Dir: dir})
	for i := range 50 {
		put(t, s, fmt.Sprintf("/k/%02d", i), "value", 0)
	}
	before = contents(s)
	at := s.log.end
	for i := range 20 {
		put(t, s, fmt.Sprintf("/later/%02d", i), "value", 0)
	}
	rev = s.Revision()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, segmentName(1))
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[at+frameHeader+3] ^= 0x10
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, before, rev
}

func TestCorruptLog(t *testing.T) {
	dir, before, rev := damaged(t)
	_, err := Open(Options{Dir: dir})
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.File != filepath.Join(dir, segmentName(1)) || corrupt.Offset < segmentHeader {
		t.Fatalf("opening a damaged log gave %v", err)
	}
	rep, err := Check(dir)
	if err != nil || len(rep.Problems) != 1 {
		t.Errorf("check found %+v %v", rep, err)
	}
	s := openTest(t, Options{Dir: dir, ReadOnly: true})
	if got := contents(s); !maps.Equal(got, before) {
		t.Errorf("read-only it shows %d keys, want the %d before the damage", len(got), len(before))
	}
	if _, err := s.Put(t.Context(), "/k", []byte("x"), AnyRevision); err == nil {
		t.Error("it takes writes")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "repaired")
	rep, err = Repair(dir, out)
	if err != nil {
		t.Fatal(err)
	}
	if rep.DroppedWrites != 19 || rep.Keys != len(before) {
		t.Errorf("repair says %+v", rep)
	}
	s = openTest(t, Options{Dir: out})
	if got := contents(s); !maps.Equal(got, before) {
		t.Errorf("repaired to %d keys, want %d", len(got), len(before))
	}
	if s.Revision() <= rev {
		t.Errorf("repaired to revision %d, and %d was known before", s.Revision(), rev)
	}
	if _, err := s.viewAt(rev, ""); !errors.Is(err, ErrCompacted) {
		t.Errorf("an old revision gives %v", err)
	}
	if _, err := Repair(dir, out); err == nil {
		t.Error("a second repair wrote over the first")
	}
	if _, err := Open(Options{Dir: dir}); err == nil {
		t.Error("the damaged folder was changed")
	}
}

func TestTornTailIsPutAside(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "/a", "1", 0)
	good := s.log.end
	put(t, s, "/b", "2", 0)
	end := s.log.end
	name := s.log.name
	s.release() // as kill -9 does: no close mark
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for cut := good; cut < end; cut++ {
		dir := t.TempDir()
		torn := append([]byte{}, data[:cut]...)
		if cut%2 == 0 {
			torn = append(torn, make([]byte, 4096)...) // as with space reserved ahead
		}
		if err := os.WriteFile(filepath.Join(dir, segmentName(1)), torn, 0o600); err != nil {
			t.Fatal(err)
		}
		rep, err := Check(dir)
		if err != nil || len(rep.Problems) > 0 {
			t.Fatalf("cut at %d: check says %+v %v", cut, rep, err)
		}
		s := openTest(t, Options{Dir: dir})
		if got := contents(s); len(got) != 1 || got["/a"] != "1" {
			t.Errorf("cut at %d: %v", cut, got)
		}
		if cut == good {
			if len(s.Notes()) > 0 {
				t.Errorf("a clean end was noted: %v", s.Notes())
			}
			continue
		}
		aside, err := filepath.Glob(filepath.Join(dir, "*.torn-*"))
		if len(s.Notes()) != 1 || len(aside) != 1 || err != nil {
			t.Errorf("cut at %d: notes %v, put aside %v", cut, s.Notes(), aside)
		}
	}
}

func TestUnknownVersion(t *testing.T) {
	dir := t.TempDir()
	head := segmentHead{seq: 1, rev: 1}
	b := head.encode(segmentMagic)
	b[8] = 99

	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	if err := os.WriteFile(filepath.Join(dir, segmentName(1)), b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Options{Dir: dir})
	var format *FormatError
	if !errors.As(err, &format) || format.Version != 99 {
		t.Errorf("a log of version 99 gave %v", err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, segmentName(1))); err != nil || string(got) != string(b) {
		t.Error("the file was changed")
	}
}

func TestForeignFile(t *testing.T) {
	for _, content := range []string{"", "short", string(make([]byte, 4096)), "#!/bin/sh\n" + string(make([]byte, 100))} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, segmentName(1)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		if _, err := Open(Options{Dir: dir}); !errors.As(err, &corrupt) {
			t.Errorf("a log of %d strange bytes gave %v", len(content), err)
		}
	}
}

func TestMissingSegment(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	for range 3 {
		put(t, s, "/a", "1", AnyRevision)
		if err := s.Persist(); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, "/a", "1", AnyRevision)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, segmentName(3))); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := Open(Options{Dir: dir}); !errors.As(err, &corrupt) {
		t.Errorf("a log with a gap gave %v", err)
	}
}

func TestUnwritableFolder(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(parent, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Options{Dir: filepath.Join(parent, "data")})
	if err == nil {
		t.Fatal("a folder below a file was made")
	}
	t.Log(err)
}
