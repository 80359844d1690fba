// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// openFolder takes the folder and brings the store into the state its files tell, or makes a new one.
func (s *Store) openFolder() (err error) {
	fs, dir := s.opts.FS, s.opts.Dir
	if !s.opts.ReadOnly {
		if err := fs.MkdirAll(dir); err != nil {
			return fmt.Errorf("data folder: %w", err)
		}
	}
	if s.lock, err = fs.Lock(dir); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	s.log = &log{fs: fs, dir: dir, mode: s.opts.Mode}
	r := recovery{store: s, fs: fs, dir: dir}
	if err := r.run(); err != nil {
		var corrupt *CorruptError
		if s.opts.ReadOnly && errors.As(err, &corrupt) {
			s.poison(err)
			return nil
		}
		return err
	}
	if s.opts.ReadOnly {
		return nil
	}
	if s.log.file == nil {
		if _, err := rand.Read(s.log.id[:]); err != nil {
			return err
		}
		if err := s.log.begin(s.rev); err != nil {
			return err
		}
	}
	if err := s.log.keepReserve(); err != nil {
		s.log.full = true // writes will be refused, and reads are as good as ever
		_ = s.log.refusal(err)
	}
	return nil
}

// recovery rebuilds a store from its files.
type recovery struct {
	store *Store
	fs    FS
	dir   string

	segments  []uint64 // sequence numbers, ascending
	snapshots []uint64 // revisions, ascending
}

func (r *recovery) run() error {
	if err := r.list(); err != nil {
		return err
	}
	if len(r.segments) == 0 && len(r.snapshots) == 0 {
		return nil
	}
	if len(r.segments) == 0 {
		return &CorruptError{File: r.path(segmentName(1)), Reason: "there are snapshots here, but no log"}
	}
	if err := r.loadSnapshot(); err != nil {
		return err
	}
	return r.replay()
}

func (r *recovery) path(name string) string { return filepath.Join(r.dir, name) }

// list finds the store's files and clears away what was left half-made.
func (r *recovery) list() error {
	names, err := r.fs.Names(r.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if n, ok := sequence(name, logPrefix); ok {
			r.segments = append(r.segments, n)
		}
		if n, ok := sequence(name, snapshotPrefix); ok {
			r.snapshots = append(r.snapshots, n)
		}
		base, half := strings.CutSuffix(name, ".tmp")
		_, log := sequence(base, logPrefix)
		_, snap := sequence(base, snapshotPrefix)
		if half && (log || snap) && !r.store.opts.ReadOnly {
			if err := r.fs.Remove(r.path(name)); err != nil {
				return err
			}
		}
	}
	slices.Sort(r.segments)
	slices.Sort(r.snapshots)
	return nil
}

// loadSnapshot brings the store to the newest snapshot that can be read. The log reaches back behind the one before
// it, so a bad one costs time and nothing else.
func (r *recovery) loadSnapshot() error {
	for i := len(r.snapshots) - 1; i >= 0; i-- {
		name := r.path(snapshotName(r.snapshots[i]))
		err := r.store.readSnapshot(r.fs, name)
		if err == nil {
			return nil
		}
		var format *FormatError
		if errors.As(err, &format) {
			return err
		}
		r.store.note("snapshot %s cannot be read, going on from the one before: %v", name, err)
		r.store.tree.root = nil
		r.store.expiry.due = nil
		r.store.rev, r.store.history.floor = firstRevision, firstRevision
		r.store.log.id = storeID{}
	}
	return nil
}

// replay applies the log from the snapshot's revision on.
func (r *recovery) replay() error {
	first, err := r.firstSegment()
	if err != nil {
		return err
	}
	var previous uint32
	for i := first; i < len(r.segments); i++ {
		last := i == len(r.segments)-1
		name := r.path(segmentName(r.segments[i]))
		if i > first && r.segments[i] != r.segments[i-1]+1 {
			return &CorruptError{File: r.path(segmentName(r.segments[i-1] + 1)), Reason: "this part of the log is missing"}
		}
		file, err := r.fs.Open(name, last && !r.store.opts.ReadOnly)
		if err != nil {
			return err
		}
		sum, err := r.replaySegment(file, name, r.segments[i], i > first, previous, last)
		if err != nil || !last {
			file.Close()
		}
		if err != nil {
			return err
		}
		previous = sum
	}
	return nil
}

// firstSegment gives the index of the segment in which the log goes on from the snapshot.
func (r *recovery) firstSegment() (int, error) {
	for i := len(r.segments) - 1; i >= 0; i-- {
		name := r.path(segmentName(r.segments[i]))
		file, err := r.fs.Open(name, false)
		if err != nil {
			return 0, err
		}
		head, err := readHead(file, name, segmentMagic)
		file.Close()
		if err != nil {
			return 0, err
		}
		if head.rev <= r.store.rev {
			return i, nil
		}
	}
	return 0, &CorruptError{File: r.path(segmentName(r.segments[0])),
		Reason: fmt.Sprintf("the log before it is missing: nothing tells what happened after revision %d", r.store.rev)}
}

// replaySegment applies one segment and gives the checksum of its last frame.
func (r *recovery) replaySegment(file File, name string, seq uint64, follows bool, previous uint32, last bool) (uint32, error) {
	s := r.store
	head, err := readHead(file, name, segmentMagic)
	if err != nil {
		return 0, err
	}
	if s.log.id == (storeID{}) {
		s.log.id = head.id
	}
	switch {
	case head.id != s.log.id:
		return 0, &CorruptError{File: name, Reason: "it belongs to another store"}
	case head.seq != seq:
		return 0, &CorruptError{File: name, Reason: fmt.Sprintf("it is segment %d under another name", head.seq)}
	case follows && head.previous != previous:
		return 0, &CorruptError{File: name, Reason: "it does not follow the segment before it"}
	}
	size, err := file.Size()
	if err != nil {
		return 0, err
	}
	fr := frameReader{file: file, offset: segmentHeader, size: size, seed: head.id.seed(), previous: head.sum}
	for {
		at := fr.offset
		f, err := fr.next()
		if err == nil {
			err = s.applyFrame(f)
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
		case errors.Is(err, errNoFrame):
			if err := r.tornOrCorrupt(file, name, at, size, &fr, last, err); err != nil {
				return 0, err
			}
			size = at
		default:
			return 0, err
		}
		if last && !s.opts.ReadOnly {
			s.log.file, s.log.name, s.log.seq = file, name, seq
			s.log.end, s.log.room, s.log.last = at, size, fr.previous
		} else if last {
			file.Close()
		}
		s.log.grown += at - segmentHeader
		return fr.previous, nil
	}
}

// tornOrCorrupt decides what a frame that does not parse means. At the end of the log, with nothing valid behind it,
// it is a write that was under way when the process ended: it is put aside and cut off. Anywhere else it is
// corruption, which is never repaired in place.
func (r *recovery) tornOrCorrupt(file File, name string, at, size int64, fr *frameReader, last bool, cause error) error {
	corrupt := &CorruptError{File: name, Offset: at, Reason: cause.Error()}
	if !last || fr.offset != at {
		return corrupt // fr.offset differs if the frame itself was sound and its content was not
	}
	tail := make([]byte, size-at)
	if _, err := file.ReadAt(tail, at); err != nil {
		return err
	}
	if laterFrame(tail, fr.seed, r.store.rev) {
		corrupt.Reason += ", and valid records follow it"
		return corrupt
	}
	for len(tail) > 0 && tail[len(tail)-1] == 0 {
		tail = tail[:len(tail)-1]
	}
	if r.store.opts.ReadOnly {
		r.store.note("%s ends in a torn write of %d bytes at byte %d", name, len(tail), at)
		return nil
	}
	aside := fmt.Sprintf("%s.torn-%d", name, at)
	if err := r.putAside(aside, tail); err != nil {
		return fmt.Errorf("put the torn end of %s aside: %w", name, err)
	}
	if err := file.Truncate(at); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	r.store.note("%s ended in a torn write of %d bytes at byte %d, never acknowledged; they are kept in %s",
		name, len(tail), at, aside)
	return nil
}

func (r *recovery) putAside(name string, data []byte) error {
	f, err := r.fs.Create(name)
	if err != nil {
		// A copy made by an earlier attempt that went no further.
		if err := r.fs.Remove(name); err != nil {
			return err
		}
		if f, err = r.fs.Create(name); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		f.Close()
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (s *Store) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// applyFrame brings the store up to a frame of the log.
func (s *Store) applyFrame(f frame) error {
	switch f.kind {
	case frameCompact:
		c := cursor{buf: f.payload}
		floor := c.varint()
		if c.bad || floor > f.rev {
			return fmt.Errorf("%w: a compaction to revision %d at %d", errNoFrame, floor, f.rev)
		}
		s.history.cut(floor)
		return nil
	case frameClose:
		if f.rev > s.rev {
			return fmt.Errorf("%w: closed at revision %d, but only %d is there", errNoFrame, f.rev, s.rev)
		}
		return nil
	case frameWrites:
	default:
		return fmt.Errorf("%w: type %d in a log", errNoFrame, f.kind)
	}
	rev := f.rev - 1
	if rev > s.rev {
		return fmt.Errorf("%w: revision %d follows %d", errNoFrame, f.rev, s.rev)
	}
	return decodeOps(f, func(o op) error {
		rev++
		if rev <= s.rev {
			return nil // the snapshot has it
		}
		return s.replayOp(o, rev, f.time)
	})
}

func (s *Store) replayOp(o op, rev, time int64) error {
	e := &event{rev: rev, key: o.key, time: time}
	if o.kind == opPut {
		e.cur = &version{key: o.key, value: o.value, created: rev, mod: rev, expires: o.expires}
		if e.prev = s.tree.set(e.cur); e.prev != nil {
			e.cur.created = e.prev.created
		}
		if o.expires != 0 {
			s.expiry.add(e.cur)
		}
	} else if e.prev = s.tree.delete(o.key); e.prev == nil {
		return fmt.Errorf("%w: revision %d deletes %q, which is not there", errNoFrame, rev, o.key)
	}
	s.history.append(e)
	s.rev = rev
	return nil
}
