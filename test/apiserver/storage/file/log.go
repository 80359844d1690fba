// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"strings"
	"time"
)

const (
	segmentHeader = 64
	segmentMagic  = "WHERRYLG"
	logPrefix     = "log-"

	// reserveStep is how much room is taken at a time for frames to come.
	reserveStep = 8 << 20
	// reserveName is the file whose room is given up when the disk is full, so that deletes and compaction go on.
	reserveName = "reserve"
	// reserveBytes is its size.
	reserveBytes = 16 << 20
	// fullRetry is how often a full disk is asked whether it still is.
	fullRetry = time.Second
)

// log is the writing end of the log: one open segment in a row of segments. Only the leader of the queue uses it.
type log struct {
	fs   FS
	dir  string
	mode Mode
	id   storeID

	file     File
	name     string
	seq      uint64
	end      int64  // where the next frame goes
	room     int64  // up to where the file has reserved space
	last     uint32 // checksum of the last frame or of the segment's header
	buf      []byte // the frame in the making
	grown    int64  // bytes written since the last snapshot
	full     bool   // the disk had no room when last asked
	asked    time.Time
	reserved File // nil when given up, or when the system has nothing like it
}

func segmentName(seq uint64) string { return fmt.Sprintf("%s%016x", logPrefix, seq) }

// sequence gives the number in a file name made of prefix and 16 hexadecimal digits.
func sequence(name, prefix string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok || len(digits) != 16 {
		return 0, false
	}
	var n uint64
	if _, err := fmt.Sscanf(digits, "%016x", &n); err != nil || fmt.Sprintf("%016x", n) != digits {
		return 0, false
	}
	return n, true
}

// segmentHead is what a segment says about itself.
//
//	 0 magic    8 bytes
//	 8 version  u32
//	12 zero     u32
//	16 identity 16 bytes
//	32 seq      u64
//	40 rev      u64  of the store when the segment was begun
//	48 previous u32  checksum of the last frame of the segment before
//	52 zero     8 bytes
//	60 checksum u32
type segmentHead struct {
	id       storeID
	seq      uint64
	rev      int64
	previous uint32
	sum      uint32
}

func (h *segmentHead) encode(magic string) []byte {
	b := make([]byte, segmentHeader)
	le := binary.LittleEndian
	copy(b, magic)
	le.PutUint32(b[8:], formatVersion)
	copy(b[16:], h.id[:])
	le.PutUint64(b[32:], h.seq)
	le.PutUint64(b[40:], uint64(h.rev))
	le.PutUint32(b[48:], h.previous)
	h.sum = crc32.Checksum(b[:60], castagnoli)
	le.PutUint32(b[60:], h.sum)
	return b
}

// readHead reads the first bytes of a log segment or, with another magic, of a snapshot.
func readHead(f io.ReaderAt, name, magic string) (segmentHead, error) {
	b := make([]byte, segmentHeader)
	if n, err := f.ReadAt(b, 0); err != nil {
		if errors.Is(err, io.EOF) {
			return segmentHead{}, &CorruptError{File: name, Offset: int64(n), Reason: "it ends within its header"}
		}
		return segmentHead{}, err
	}
	le := binary.LittleEndian
	if string(b[:8]) != magic {
		return segmentHead{}, &CorruptError{File: name, Reason: "it is not a file of the store"}
	}
	h := segmentHead{
		id: storeID(b[16:32]), seq: le.Uint64(b[32:]), rev: int64(le.Uint64(b[40:])),
		previous: le.Uint32(b[48:]), sum: le.Uint32(b[60:]),
	}
	sound := crc32.Checksum(b[:60], castagnoli) == h.sum
	if v := le.Uint32(b[8:]); v != formatVersion && sound {
		return segmentHead{}, &FormatError{File: name, Version: v}
	}
	if !sound {
		return segmentHead{}, &CorruptError{File: name, Reason: "the header's checksum differs"}
	}
	return h, nil
}

// begin makes the next segment and writes there from now on. The one before is complete and stays as it is. After an
// error that is not a refusal nobody knows which of the two a reader would find.
func (l *log) begin(rev int64) error {
	head := segmentHead{id: l.id, seq: l.seq + 1, rev: rev, previous: l.last}
	name := filepath.Join(l.dir, segmentName(head.seq))
	temp := name + ".tmp"
	f, err := l.fs.Create(temp)
	if err != nil {
		return &refusalError{err}
	}
	undo := func(err error) error {
		f.Close()
		_ = l.fs.Remove(temp)
		return &refusalError{err} // the log is as it was
	}
	if err := f.Reserve(reserveStep); err != nil {
		return undo(err)
	}
	if _, err := f.WriteAt(head.encode(segmentMagic), 0); err != nil {
		return undo(err)
	}
	if l.mode == Durable {
		if err := f.Sync(); err != nil {
			return undo(err)
		}
	}
	if err := l.fs.Rename(temp, name); err != nil {
		f.Close()
		return err
	}
	if l.mode == Durable {
		if err := l.fs.SyncDir(l.dir); err != nil {
			f.Close()
			return err
		}
	}
	old, oldEnd := l.file, l.end
	l.file, l.name, l.seq = f, name, head.seq
	l.end, l.room, l.last = segmentHeader, 0, head.sum
	if size, err := f.Size(); err == nil {
		l.room = size
	}
	if old == nil {
		return nil
	}
	// What is behind the old segment's last frame is room that will not be needed. It is zero, so a failure to cut
	// it off harms nobody.
	_ = old.Truncate(oldEnd)
	return old.Close()
}

// refusalError is a failure that changed nothing on the disk: the write is refused and may be tried again.
type refusalError struct{ err error }

func (e *refusalError) Error() string { return e.err.Error() }
func (e *refusalError) Unwrap() error { return e.err }

func isRefusal(err error) bool {
	var r *refusalError
	return errors.As(err, &r)
}

func (l *log) refusal(err error) error {
	if noSpace(err) || errors.Is(err, errDiskFull) {
		l.full = true
		return &refusalError{fmt.Errorf("%w: %s: %w; free some space there, deletes still work", ErrFull, l.dir, err)}
	}
	return err
}

// append seals the frame in buf and writes it. After an error that is a refusal the log is as it was; after any other
// nobody knows.
func (l *log) append(kind frameType, count int, rev, now int64, urgent bool) error {
	sum := sealFrame(l.buf, kind, count, rev, now, l.id.seed(), l.last)
	end := l.end + int64(len(l.buf))
	if err := l.makeRoom(end, urgent); err != nil {
		return err
	}
	if n, err := l.file.WriteAt(l.buf, l.end); err != nil {
		if !noSpace(err) {
			return fmt.Errorf("write %s: %w", l.name, err)
		}
		l.room = l.end
		if n > 0 {
			if err := l.file.Truncate(l.end); err != nil {
				return fmt.Errorf("cut off the half-written end of %s: %w", l.name, err)
			}
		}
		return l.refusal(err)
	}
	if l.mode == Durable {
		if err := l.file.Sync(); err != nil {
			return fmt.Errorf("sync %s: %w", l.name, err)
		}
	}
	l.end, l.last = end, sum
	l.grown += int64(len(l.buf))
	if cap(l.buf) > 2*maxBatchBytes {
		l.buf = nil // a Restore's frame is not kept
	}
	return nil
}

// makeRoom sees to it that the segment has space up to end. Urgent writes may use what was kept for them.
func (l *log) makeRoom(end int64, urgent bool) error {
	if l.full && !urgent {
		if time.Since(l.asked) < fullRetry {
			return l.refusal(errDiskFull)
		}
		l.asked = time.Now()
		if err := l.keepReserve(); err != nil {
			return l.refusal(err)
		}
		l.full = false
	}
	if end <= l.room {
		return nil
	}
	room := (end/reserveStep + 1) * reserveStep
	err := l.file.Reserve(room)
	if err != nil && noSpace(err) {
		room = end
		err = l.file.Reserve(room)
	}
	if err != nil && noSpace(err) && urgent && l.giveReserve() {
		err = l.file.Reserve(room)
	}
	if err != nil {
		return l.refusal(fmt.Errorf("reserve space for %s: %w", l.name, err))
	}
	l.room = room
	return nil
}

// errDiskFull stands for what the system said when it was last asked.
var errDiskFull = errors.New("no space left")

// keepReserve takes the room for urgent writes, unless it is taken.
func (l *log) keepReserve() error {
	if l.reserved != nil {
		return nil
	}
	name := filepath.Join(l.dir, reserveName)
	f, err := l.fs.Open(name, true)
	if err != nil {
		if f, err = l.fs.Create(name); err != nil {
			return err
		}
	}
	if err := f.Reserve(reserveBytes); err != nil {
		f.Close()
		_ = l.fs.Remove(name)
		return err
	}
	l.reserved = f
	return nil
}

// giveReserve gives that room up and tells whether there was any.
func (l *log) giveReserve() bool {
	if l.reserved == nil {
		return false
	}
	l.full, l.asked = true, time.Now()
	l.reserved.Close()
	l.reserved = nil
	return l.fs.Remove(filepath.Join(l.dir, reserveName)) == nil
}

// close writes that all is in good order, if it is, and closes the files.
func (l *log) close(healthy bool, rev, now int64) error {
	if l.reserved != nil {
		l.reserved.Close()
	}
	if l.file == nil {
		return nil
	}
	var err error
	if healthy {
		l.buf = startFrame(l.buf)
		if err = l.append(frameClose, 0, rev, now, true); err == nil {
			err = l.file.Truncate(l.end)
		}
		if isRefusal(err) {
			err = nil // the mark is a courtesy
		}
	}
	return errors.Join(err, l.file.Close())
}

// abandon closes the files and leaves them as they are.
func (l *log) abandon() { _ = l.close(false, 0, 0) }
