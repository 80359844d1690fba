// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

const (
	snapshotMagic  = "WHERRYSN"
	snapshotPrefix = "snap-"
	// snapshotChunk is how much of a snapshot goes into one frame.
	snapshotChunk = 256 << 10
	// keptSnapshots is how many snapshots there are: the newest, and the one before it in case that one goes bad.
	keptSnapshots = 2
)

func snapshotName(rev uint64) string { return fmt.Sprintf("%s%016x", snapshotPrefix, rev) }

// considerSnapshot starts a snapshot when the log has grown enough. Only the leader calls it.
func (s *Store) considerSnapshot() {
	if s.log == nil {
		return
	}
	due := max(s.opts.SnapshotBytes, s.tree.root.within("", "").bytes/2, s.retryAt)
	if s.log.grown < due || !s.snapshotting.CompareAndSwap(false, true) {
		return
	}
	s.retryAt = s.log.grown + s.opts.SnapshotBytes
	job, err := s.prepareSnapshot()
	if err != nil {
		s.snapshotting.Store(false)
		return
	}
	started := s.spawn(func() {
		defer s.snapshotting.Store(false)
		if err := job.run(); err == nil {
			// The leader's fields are the leader's to change.
			_ = s.do(&request{alone: func() error {
				s.log.grown -= job.grown
				s.retryAt = 0
				return nil
			}})
		}
	})
	if !started {
		s.snapshotting.Store(false)
	}
}

// Persist writes a snapshot now and drops the log it makes superfluous, as the store does by itself from time to
// time. It blocks until that is done; other callers read and write meanwhile. In Memory mode it does nothing.
func (s *Store) Persist() error {
	if s.log == nil {
		return nil
	}
	var job *snapshotJob
	err := s.do(&request{alone: func() (err error) {
		if err := s.Failure(); err != nil {
			return refused(err)
		}
		if !s.snapshotting.CompareAndSwap(false, true) {
			return errors.New("a snapshot is being written already")
		}
		if job, err = s.prepareSnapshot(); err != nil {
			s.snapshotting.Store(false)
		}
		return err
	}})
	if err != nil {
		return err
	}
	defer s.snapshotting.Store(false)
	if err := job.run(); err != nil {
		return err
	}
	return s.do(&request{alone: func() error {
		s.log.grown -= job.grown
		return nil
	}})
}

// snapshotJob is a snapshot about to be written.
type snapshotJob struct {
	store *Store
	view  view
	fs    FS
	dir   string
	id    storeID
	sync  bool
	grown int64
	seq   uint64 // of the segment begun for it
}

// prepareSnapshot begins a new segment and fixes what the snapshot will hold: the state at the floor of history, so
// that the log behind it is the history. Only the leader calls it.
func (s *Store) prepareSnapshot() (*snapshotJob, error) {
	if floor := s.history.surplus(&s.opts, s.now()); floor > 0 {
		if err := s.compact(floor); err != nil {
			return nil, err
		}
	}
	grown := s.log.grown
	if err := s.log.begin(s.rev); err != nil {
		if !isRefusal(err) {
			err = fmt.Errorf("begin a new log segment: %w", err)
			s.poison(err)
		}
		return nil, err
	}
	v, err := s.viewAt(s.history.floor, "")
	if err != nil {
		return nil, err
	}
	return &snapshotJob{store: s, view: v, fs: s.opts.FS, dir: s.opts.Dir, id: s.log.id,
		sync: s.opts.Mode == Durable, grown: grown, seq: s.log.seq}, nil
}

// run writes the snapshot, reads it back and drops what it replaces. A failure leaves everything as it was.
func (j *snapshotJob) run() error {
	name := filepath.Join(j.dir, snapshotName(uint64(j.view.rev)))
	temp := name + ".tmp"
	err := j.write(temp)
	if err == nil {
		err = j.fs.Rename(temp, name)
	}
	if err == nil && j.sync {
		err = j.fs.SyncDir(j.dir)
	}
	if err == nil {
		var check Store
		if err = check.readSnapshot(j.fs, name); err != nil {
			_ = j.fs.Remove(name)
		}
	}
	if err != nil {
		_ = j.fs.Remove(temp)
		return fmt.Errorf("write snapshot: %w", err)
	}
	return j.dropOld()
}

func (j *snapshotJob) write(name string) error {
	_ = j.fs.Remove(name) // left by an earlier attempt
	f, err := j.fs.Create(name)
	if err != nil {
		return err
	}
	w := snapshotWriter{file: f, id: j.id}
	head := segmentHead{id: j.id, seq: 1, rev: j.view.rev}
	w.put(head.encode(snapshotMagic))
	w.last = head.sum
	w.buf = startFrame(w.buf)
	j.view.ascend("", "", func(v *version) bool {
		w.buf = appendEntry(w.buf, v)
		w.count++
		w.total++
		if len(w.buf) >= snapshotChunk {
			w.flush(frameEntries, w.count)
		}
		return w.err == nil && j.store.ctx.Err() == nil
	})
	if err := j.store.ctx.Err(); err != nil {
		w.err = err
	}
	if w.count > 0 {
		w.flush(frameEntries, w.count)
	}
	w.flush(frameEnd, w.total)
	if w.err == nil && j.sync {
		w.err = f.Sync()
	}
	return errors.Join(w.err, f.Close())
}

// snapshotWriter writes frames one after the other until one fails.
type snapshotWriter struct {
	file  File
	id    storeID
	end   int64
	last  uint32
	buf   []byte
	count int // entries in buf
	total int
	err   error
}

func (w *snapshotWriter) put(b []byte) {
	if w.err == nil {
		_, w.err = w.file.WriteAt(b, w.end)
		w.end += int64(len(b))
	}
}

func (w *snapshotWriter) flush(kind frameType, count int) {
	w.last = sealFrame(w.buf, kind, count, 0, 0, w.id.seed(), w.last)
	w.put(w.buf)
	w.buf, w.count = startFrame(w.buf), 0
}

// dropOld removes the snapshots but the newest two, and the segments that tell only what happened before the older
// of these.
func (j *snapshotJob) dropOld() error {
	r := recovery{store: &Store{opts: Options{ReadOnly: true}}, fs: j.fs, dir: j.dir}
	if err := r.list(); err != nil {
		return err
	}
	if len(r.snapshots) < keptSnapshots {
		return nil
	}
	kept := r.snapshots[len(r.snapshots)-keptSnapshots:]
	for _, rev := range r.snapshots[:len(r.snapshots)-keptSnapshots] {
		if err := j.fs.Remove(r.path(snapshotName(rev))); err != nil {
			return err
		}
	}
	r.store.rev = int64(kept[0])
	first, err := r.firstSegment()
	if err != nil {
		return err
	}
	for _, seq := range r.segments[:first] {
		if err := j.fs.Remove(r.path(segmentName(seq))); err != nil {
			return err
		}
	}
	return nil
}

// readSnapshot fills an empty store with a snapshot.
func (s *Store) readSnapshot(fs FS, name string) error {
	file, err := fs.Open(name, false)
	if err != nil {
		return err
	}
	defer file.Close()
	head, err := readHead(file, name, snapshotMagic)
	if err != nil {
		return err
	}
	size, err := file.Size()
	if err != nil {
		return err
	}
	r := frameReader{file: file, offset: segmentHeader, size: size, seed: head.id.seed(), previous: head.sum}
	total := 0
	for {
		at := r.offset
		f, err := r.next()
		if err == nil && f.kind == frameEntries {
			err = decodeEntries(f, func(v *version) error {
				total++
				if v.mod > head.rev || s.tree.set(v) != nil {
					return fmt.Errorf("%w: an entry out of place", errNoFrame)
				}
				if v.expires != 0 {
					s.expiry.add(v)
				}
				return nil
			})
		}
		switch {
		case errors.Is(err, io.EOF):
			return &CorruptError{File: name, Offset: at, Reason: "it ends too early"}
		case errors.Is(err, errNoFrame):
			return &CorruptError{File: name, Offset: at, Reason: err.Error()}
		case err != nil:
			return err
		case f.kind == frameEnd && int(f.count) == total && r.offset == size:
			s.rev, s.history.floor = head.rev, head.rev
			if s.log != nil {
				s.log.id = head.id
			}
			return nil
		case f.kind != frameEntries:
			return &CorruptError{File: name, Offset: at, Reason: "its end is not where it should be"}
		}
	}
}
