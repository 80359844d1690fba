// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

var writeSeeds = flag.Bool("write-seeds", false, "write the seeds of the fuzz targets to testdata")

// realFiles gives a small log and a small snapshot as the store writes them.
func realFiles(t testing.TB) (log, snapshot []byte) {
	disk := newMemFS()
	s, err := Open(Options{Dir: "/d", FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "/registry/pods/ns/a", "one", 0)
	put(t, s, "/registry/pods/ns/a", "two", AnyRevision)
	if _, err := s.Txn(t.Context(), Op{Key: "/registry/events/e", Value: []byte("x"), Expires: time.Unix(1<<40, 0)},
		Op{Key: "/registry/pods/ns/a", Expect: AnyRevision}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Compact(3), s.Persist(), s.Close()); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimRight(disk.names[disk.only(logPrefix)[0]].data, "\x00"), disk.names[disk.only(snapshotPrefix)[0]].data
}

// TestSeeds writes the seeds when asked to.
func TestSeeds(t *testing.T) {
	if !*writeSeeds {
		for _, target := range []string{"FuzzLog", "FuzzSnapshot", "FuzzFrames"} {
			if seeds, err := os.ReadDir(filepath.Join("testdata", "fuzz", target)); err != nil || len(seeds) < 2 {
				t.Errorf("%s has no seeds: %v", target, err)
			}
		}
		return
	}
	log, snapshot := realFiles(t)
	save := func(target, name, body string) {
		dir := filepath.Join("testdata", "fuzz", target)
		if err := errors.Join(os.MkdirAll(dir, 0o755),
			os.WriteFile(filepath.Join(dir, name), []byte("go test fuzz v1\n"+body), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	raw := func(b []byte) string { return fmt.Sprintf("[]byte(%q)\n", b) }
	framed := func(kind frameType, count uint32, rev int64, payload []byte) string {
		return fmt.Sprintf("byte(%d)\nuint32(%d)\nint64(%d)\n%s", kind, count, rev, raw(payload))
	}
	save("FuzzLog", "whole", raw(log))
	save("FuzzLog", "torn", raw(log[:segmentHeader+frameHeader+9]))
	save("FuzzLog", "header", raw(log[:segmentHeader]))
	save("FuzzSnapshot", "whole", raw(snapshot))
	save("FuzzSnapshot", "cut", raw(snapshot[:len(snapshot)-frameHeader]))
	ops := appendOp(appendOp(nil, op{kind: opPut, key: "/a", value: []byte("v"), expires: 7}), op{kind: opDelete, key: "/a"})
	save("FuzzFrames", "writes", framed(frameWrites, 2, 2, ops))
	save("FuzzFrames", "many", framed(frameWrites, 1<<31, 2, ops))
	save("FuzzFrames", "compact", framed(frameCompact, 0, 1, []byte{2}))
	save("FuzzFrames", "entries", framed(frameEntries, 1, 0, appendEntry(nil, &version{key: "/a", value: []byte("v"), created: 1, mod: 1})))
}

// allocated runs f and gives the bytes it allocated.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// tryOpen opens a store with the given file in it. Whatever the file holds, opening ends with a store that is sound
// or with an error.
func tryOpen(t *testing.T, files map[string][]byte) {
	for _, readOnly := range []bool{true, false} {
		disk := newMemFS()
		for name, data := range files {
			disk.names["/d/"+name] = &memFile{data: append([]byte{}, data...)}
		}
		s, err := Open(Options{Dir: "/d", FS: disk, ReadOnly: readOnly})
		if err != nil {
			continue
		}
		if err := s.Verify(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzLog opens a store whose log is what the fuzzer says.
func FuzzLog(f *testing.F) {
	log, _ := realFiles(f)
	f.Add(log)
	f.Fuzz(func(t *testing.T, data []byte) { tryOpen(t, map[string][]byte{segmentName(1): data}) })
}

// FuzzSnapshot opens a store whose snapshot is what the fuzzer says, beside a log that is sound.
func FuzzSnapshot(f *testing.F) {
	log, snapshot := realFiles(f)
	f.Add(snapshot)
	f.Fuzz(func(t *testing.T, data []byte) {
		tryOpen(t, map[string][]byte{segmentName(1): log, snapshotName(3): data})
	})
}

// FuzzFrames puts what the fuzzer says into a frame whose checksum is right, so that it gets past that.
func FuzzFrames(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind byte, count uint32, rev int64, payload []byte) {
		if len(payload) > 1<<20 {
			return
		}
		id := storeID{1}
		head := segmentHead{id: id, seq: 1, rev: 1}
		file := head.encode(segmentMagic)
		buf := append(startFrame(nil), payload...)
		sealFrame(buf, frameType(kind), int(count), rev, 0, id.seed(), head.sum)
		tryOpen(t, map[string][]byte{segmentName(1): append(file, buf...)})
		snap := segmentHead{id: id, seq: 1, rev: max(1, rev)}
		file = snap.encode(snapshotMagic)
		buf = append(startFrame(nil), payload...)
		sealFrame(buf, frameType(kind), int(count), rev, 0, id.seed(), snap.sum)
		tryOpen(t, map[string][]byte{segmentName(1): head.encode(segmentMagic), snapshotName(1): append(file, buf...)})

		fr := frame{count: count, payload: payload}
		limit := uint64(2*len(payload) + 1<<20)
		if n := allocated(func() { _ = decodeOps(fr, func(op) error { return nil }) }); n > limit {
			t.Errorf("%d bytes allocated for the operations in %d", n, len(payload))
		}
	})
}
